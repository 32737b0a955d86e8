//! Compiles what is preloaded into user-mode Linux, so that hosts need no compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Below `src/uml`.
const LIBRARIES: [&str; 3] = ["wide_state", "same_random", "disk_log"];

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = (variable("CARGO_CFG_TARGET_ARCH"), variable("CARGO_CFG_TARGET_OS"));
    for name in LIBRARIES {
        let source = format!("src/uml/{name}.c");
        println!("cargo::rerun-if-changed={source}");
        if target == ("x86_64".into(), "linux".into()) {
            compile(&source, &PathBuf::from(variable("OUT_DIR")).join(format!("{name}.so")));
        }
    }
}

fn compile(source: &str, library: &Path) {
    let mut command: Command = cc::Build::new().get_compiler().to_command();
    command.args([
        "-O2",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-stack-protector",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    match command.arg("-o").arg(library).arg(source).status() {
        Ok(status) if status.success() => {}
        other => {
            println!("cargo::error=cannot compile {source}: {other:?}");
            exit(1);
        }
    }
}
