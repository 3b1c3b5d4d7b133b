//! Generates the wire's code from the .proto files, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["dormouse/v1/dormouse.proto", "dormouse/v1/observe.proto"];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
