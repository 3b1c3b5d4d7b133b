//! Generates the wire's code from the .proto file, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = "dormouse/v1/dormouse.proto";
    println!("cargo::rerun-if-changed={file}");
    let descriptors = protox::compile([file], ["."])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
