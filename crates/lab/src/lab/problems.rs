//! What kernels say on consoles that a result must not hide.

/// Beginnings of such messages, wherever they are in a line.
const SIGNS: [&str; 11] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "Kernel panic",
    "blocked for more than",
    "rcu: INFO: rcu",
    "Out of memory",
    "oom-kill:",
    "not responding",
    "I/O error",
    "EXT4-fs error",
];

/// Most lines that are kept.
const MOST: usize = 20;

/// The lines of a console that say so.
pub fn warnings(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim_end);
    let found = lines.filter(|line| SIGNS.iter().any(|sign| line.contains(sign)));
    found.take(MOST).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_found_and_other_lines_are_not() {
        let console = "Linux version 6.1.0\r\n\
            [   12.1] nfs: server 10.77.0.1 not responding, still trying\r\n\
            [   13.0] NFS: Registering the id_resolver key type\n\
            [  240.9] INFO: task benchmaster:120 blocked for more than 120 seconds.\n\
            [  250.0] WARNING: CPU: 0 PID: 1 at fs/nfs/write.c:100\n\
            [  251.0] nfs: server 10.77.0.1 OK\n";
        let found = warnings(console);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("still trying") && found[1].contains("blocked"));
        assert!(warnings(&"BUG: x\n".repeat(100)).len() == MOST);
    }
}
