//! A lab without the rest of the program: `machines up [CLIENTS [SERVER [BACK-END]]] -- COMMAND...` brings one up,
//! runs shell commands in its first client, and ends it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::error::Error;
use std::process::ExitCode;

use benchmaster_lab::guest::{self, Command};
use benchmaster_lab::{Lab, LabConfig, supervisor};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    match words {
        ["__supervisor", stage] => Ok(supervisor::run(stage.parse()?)?),
        ["__guest"] => match guest::process_1()? {},
        ["__guest", "--serve", address] => Ok(guest::serve(address.parse()?)?),
        ["up", rest @ ..] => {
            let end = rest.iter().position(|word| *word == "--").unwrap_or(rest.len());
            let (options, commands) = rest.split_at(end);
            let mut config = LabConfig { name: "example".into(), ..LabConfig::default() };
            if let Some(clients) = options.first() {
                config.clients = clients.parse()?;
            }
            if let Some(server) = options.get(1) {
                config.server = server.parse()?;
            }
            config.back_end = options.get(2).map(|name| name.parse()).transpose()?;
            let lab = Lab::up(&config, &mut |text| eprintln!("{text}"))?;
            let commands = commands.get(1..).unwrap_or_default().join(" ");
            let output = lab.run("c1", &Command::shell(&commands))?;
            print!("{}", output.stdout);
            eprint!("{}", output.stderr);
            eprintln!("status {}", output.status);
            for machine in lab.facts()?.machines {
                eprintln!("{} {:?} {:.2?}", machine.name, machine.state, machine.boot_time);
                eprintln!("{:?}", lab.guest_facts(&machine.name)?.boot);
            }
            for problem in lab.problems() {
                eprintln!("{problem:?}");
            }
            Ok(())
        }
        _ => Err("give `up`".into()),
    }
}
