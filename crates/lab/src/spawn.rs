//! Starting the processes that are machines.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use benchmaster_netem::namespace::{Namespace, NamespaceError, end_with_caller};

/// What the keeper is asked to start, and where it gives it back.
type Request = (Command, Sender<io::Result<Child>>);

/// Starts a process in the network namespace of the calling thread. It leads a process group of its own, and is killed when
/// this process ends, however that is, not already when the calling thread does.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static KEEPER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    let unusual = |error: NamespaceError| io::Error::other(error.to_string());
    Namespace::current().map_err(unusual)?.apply(&mut command).map_err(unusual)?;
    command.process_group(0);
    end_with_caller(&mut command);
    let (answer, answered) = channel();
    let lost = || io::Error::other("the thread that starts machines has ended");
    let keeper = match KEEPER.get() {
        Some(keeper) => keeper,
        None => {
            let (sender, receiver) = channel();
            thread::Builder::new().name("machines".into()).spawn(move || keep(&receiver))?;
            // Another thread may have been faster; the keeper of this one then ends.
            KEEPER.get_or_init(|| Mutex::new(sender))
        }
    };
    let sender = keeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
    sender.send((command, answer)).map_err(|_| lost())?;
    answered.recv().map_err(|_| lost())?
}

/// Processes that die with their parent die with the thread that started them, so that one which lives as long as the
/// process starts them all.
fn keep(requests: &Receiver<Request>) {
    while let Ok((mut command, answer)) = requests.recv() {
        // Who asked waits.
        let _ = answer.send(command.spawn());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut child = thread::spawn(move || spawn(command).unwrap()).join().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn what_cannot_be_started_is_said() {
        let error = spawn(Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
