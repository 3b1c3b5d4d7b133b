"""Writes the experiment that moto's tests are run against: the types, zones and regions that they name, and no limits to speak of."""

TYPES = """t1.micro 1 1  m1.small 1 2  m1.large 2 8  m3.large 2 8  m4.large 2 8  m5.large 2 8  m5.xlarge 4 16  m6g.large 2 8
t2.nano 1 1  t2.micro 1 1  t2.small 1 2  t2.medium 2 4  t2.large 2 8  t3.nano 2 1  t3.micro 2 1  t3.small 2 2  t3.medium 2 4
t3a.micro 2 1  t3a.small 2 2  t4g.micro 2 1  a1.small 1 2  a1.large 2 4  a1.medium 1 2  b1.large 2 8  c3.large 2 4  c4.large 2 4  c4.2xlarge 8 16
c5.large 2 4  c5.xlarge 4 8  c5.medium 1 2  r4.large 2 16  r5.large 2 16  x1.16xlarge 64 976  g4dn.xlarge 4 16"""

ZONES = {
    "us-east-1": "abcdef", "us-east-2": "abc", "us-west-1": "ab", "us-west-2": "abcd", "eu-west-1": "abc", "eu-west-2": "abc",
    "eu-central-1": "abc", "ap-northeast-1": "acd", "ap-south-1": "abc", "ca-central-1": "abd", "sa-east-1": "abc", "ap-east-1": "abc",
}
BURSTABLE = ("t1", "t2", "t3", "t3a", "t4g")

words = TYPES.split()
zones = ", ".join(f'"{region}{letter}"' for region, letters in ZONES.items() for letter in letters)
print(f"""name = "moto"

[cloud]
boot = "0s"
tariff = "ec2"
zones = [{zones}]
limits = {{ spot = 100000, on-demand = 100000 }}
account-vcpus = {{ spot = 10000000, on-demand = 10000000 }}
""")
for name, vcpus, memory in zip(words[::3], words[1::3], words[2::3]):
    print(f"""[[cloud.type]]
name = "{name}"
vcpus = {vcpus}
memory = "{memory} GiB"
on-demand = {0.05 * int(vcpus):.3f}
spot = {0.02 * int(vcpus):.3f}""")
    if name.split(".")[0] in BURSTABLE:
        print("burstable = { baseline = 0.1, credits-per-hour = 6 }")
    print()
