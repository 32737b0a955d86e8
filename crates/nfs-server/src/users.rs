//! Which user a principal of Kerberos is.

use std::fs;
use std::path::Path;

use benchmaster_nfs_proto::rpc::AuthFlavor;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::cred::{Credentials, NOBODY};

/// Users by principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Users(HashMap<String, User>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    uid: u32,
    /// At least one.
    gids: SmallVec<[u32; 4]>,
}

/// Why a map of users cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read the map of users {path}: {error}")]
    File {
        /// Path as given.
        path: String,
        /// Cause.
        error: std::io::Error,
    },
    /// A line is no user.
    #[error(
        "{path}, line {line}: `{text}` {problem}; write PRINCIPAL UID GID[,GID...], as in alice@EXAMPLE.ORG 1000 1000,100"
    )]
    Line {
        /// Path as given.
        path: String,
        /// Its number, from 1.
        line: usize,
        /// Text of the line.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Users {
    /// Reads a file: a user per line, and `#` before remarks.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no user.
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let name = path.display().to_string();
        let text =
            fs::read_to_string(path).map_err(|error| UsersError::File { path: name.clone(), error })?;
        Self::parse(&name, &text)
    }

    fn parse(path: &str, text: &str) -> Result<Self, UsersError> {
        let mut users = HashMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let content = line.split('#').next().unwrap_or_default();
            let wrong = |problem| UsersError::Line {
                path: path.to_owned(),
                line: number,
                text: line.to_owned(),
                problem,
            };
            let words: Vec<&str> = content.split_whitespace().collect();
            let [principal, uid, gids] = words[..] else {
                if words.is_empty() {
                    continue;
                }
                return Err(wrong("has not three words"));
            };
            let not_number = |_| wrong("has something else than a number");
            let uid = uid.parse().map_err(not_number)?;
            let gids = gids.split(',').map(str::parse).collect::<Result<_, _>>().map_err(not_number)?;
            if users.insert(principal.to_owned(), User { uid, gids }).is_some() {
                return Err(wrong("names a principal for the second time"));
            }
        }
        Ok(Self(users))
    }

    /// The user that a principal is; one that is not in the map is the anonymous user. `number` tells principals apart.
    pub fn find(&self, principal: &str, number: u64, root_squash: bool) -> Credentials {
        let squash = |id: u32| if root_squash && id == 0 { NOBODY } else { id };
        let (uid, gids) = match self.0.get(principal) {
            Some(user) => (user.uid, &user.gids[..]),
            None => (NOBODY, &[NOBODY][..]),
        };
        let mut gids = gids.iter().copied().map(squash);
        Credentials {
            uid: squash(uid),
            gid: gids.next().unwrap_or(NOBODY),
            gids: gids.collect(),
            flavor: AuthFlavor::RPCSEC_GSS,
            principal: number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_principal_and_others_are_squashed() {
        let text = "# users\nalice@R 1000 1000,100,20\n\nroot/host@R 0 0 # the host\n";
        let users = Users::parse("users", text).unwrap();
        let alice = users.find("alice@R", 5, true);
        assert_eq!((alice.uid, alice.gid, &alice.gids[..]), (1000, 1000, &[100, 20][..]));
        assert_eq!((alice.flavor, alice.principal), (AuthFlavor::RPCSEC_GSS, 5));
        let unknown = users.find("alice@OTHER", 6, false);
        assert_eq!((unknown.uid, unknown.gid, unknown.gids.len()), (NOBODY, NOBODY, 0));
        assert_eq!(users.find("root/host@R", 7, false).uid, 0);
        assert_eq!(users.find("root/host@R", 7, true).uid, NOBODY);
        for (bad, problem) in [
            ("alice@R 1000", "line 1: `alice@R 1000` has not three words"),
            ("\nalice@R x 1", "line 2: `alice@R x 1` has something else than a number"),
            ("a 1 1,", "has something else than a number"),
            ("a 1 1\na 2 2", "line 2: `a 2 2` names a principal for the second time"),
        ] {
            let error = Users::parse("users", bad).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
