//! What is shown of messages.

/// Longest text of one operation.
const LONGEST: usize = 240;

/// A message's text, shortened where it is long; long runs of bytes, such as data and handles, go first.
pub(crate) fn brief(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    // `[00, 01, 02, …]`
    while let Some(start) = rest.find('[') {
        let (before, list) = rest.split_at(start);
        shown += before;
        let end = list.find(']').map_or(list.len(), |end| end + 1);
        let items = list[..end].matches(',').count() + 1;
        match items {
            0..=8 => shown += &list[..end],
            _ => shown += &format!("[{items} bytes]"),
        }
        rest = &list[end..];
    }
    shown += rest;
    shown = shown.replace(&"n".repeat(100), "n…");
    match shown.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None => shown,
    }
}
