//! Makes the types of the protocol between controller and agents, without an installed `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/fleet.proto");
    let files = protox::compile(["proto/fleet.proto"], ["proto"])?;
    tonic_prost_build::configure().build_transport(false).bytes(".").compile_fds(files)?;
    Ok(())
}
