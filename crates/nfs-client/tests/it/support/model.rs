//! Random operations in a directory, each of which must do what a model of it says, whatever happens to its messages.

use std::collections::BTreeMap;

use benchmaster_nfs_client::protocol::{NfsResult, Protocol};
use benchmaster_nfs_client::types::{Create, Entry, Handle, OpenHow, Stability};

use super::futures::all;
use super::random::Random;

/// What is at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Object {
    File(Vec<u8>),
    Directory,
    Symlink(Vec<u8>),
}

/// A directory as it must be.
#[derive(Debug)]
pub(crate) struct Model {
    objects: BTreeMap<Vec<u8>, Object>,
    random: Random,
}

/// The number of an error, or 0.
fn number<T>(result: &NfsResult<T>) -> i32 {
    result.as_ref().err().map_or(0, benchmaster_nfs_client::error::NfsError::errno)
}

impl Model {
    pub(crate) fn new(seed: u64) -> Self {
        Self { objects: BTreeMap::new(), random: Random::new(seed) }
    }

    fn name(&mut self) -> Vec<u8> {
        format!("n{}", self.random.draw(6)).into_bytes()
    }

    /// Carries out one operation and compares its result.
    pub(crate) async fn step<P: Protocol>(&mut self, client: &P, directory: &Handle) {
        let name = self.name();
        let known = self.objects.get(&name).cloned();
        let choice = self.random.draw(8);
        let what = format!("{choice} of {} ({known:?})", String::from_utf8_lossy(&name));
        match choice {
            0 => {
                let mode = 0o600;
                let how =
                    OpenHow { read: true, write: true, create: Create::Exclusive, truncate: false, mode };
                let made = client.open(directory, &name, &how).await;
                assert_eq!(number(&made), if known.is_some() { libc::EEXIST } else { 0 }, "{what}");
                if let Ok(made) = made {
                    client.close(made.file).await.unwrap();
                    self.objects.insert(name, Object::File(Vec::new()));
                }
            }
            1 | 2 => {
                let Some(Object::File(mut content)) = known else { return };
                let how = OpenHow { read: true, write: true, create: Create::No, truncate: false, mode: 0 };
                let file = client.open(directory, &name, &how).await.unwrap().file;
                let (offset, len) = (self.random.draw(5000) as usize, 1 + self.random.draw(5000) as usize);
                let data = vec![self.random.draw(256) as u8; len];
                let written = client.write(&file, &data, offset as u64, Stability::File).await.unwrap();
                assert_eq!(written.len, len, "{what}");
                content.resize(content.len().max(offset + len), 0);
                content[offset..offset + len].copy_from_slice(&data);
                client.close(file).await.unwrap();
                self.objects.insert(name, Object::File(content));
            }
            3 => {
                let made = client.mkdir(directory, &name, 0o700).await;
                assert_eq!(number(&made), if known.is_some() { libc::EEXIST } else { 0 }, "{what}");
                if made.is_ok() {
                    self.objects.insert(name, Object::Directory);
                }
            }
            4 => {
                let target = format!("target {}", self.random.draw(1000)).into_bytes();
                let made = client.symlink(directory, &name, &target).await;
                assert_eq!(number(&made), if known.is_some() { libc::EEXIST } else { 0 }, "{what}");
                if made.is_ok() {
                    self.objects.insert(name, Object::Symlink(target));
                }
            }
            5 => match known {
                Some(Object::Directory) => {
                    client.rmdir(directory, &name).await.unwrap();
                    self.objects.remove(&name);
                }
                _ => {
                    let removed = client.remove(directory, &name).await;
                    assert_eq!(number(&removed), if known.is_some() { 0 } else { libc::ENOENT }, "{what}");
                    self.objects.remove(&name);
                }
            },
            6 => {
                // To a name that is free: what is replaced depends on the kinds.
                let to = self.name();
                if self.objects.contains_key(&to) {
                    return;
                }
                let renamed = client.rename((directory, &name), (directory, &to)).await;
                assert_eq!(number(&renamed), if known.is_some() { 0 } else { libc::ENOENT }, "{what}");
                if let Some(object) = self.objects.remove(&name) {
                    self.objects.insert(to, object);
                }
            }
            _ => {
                let found = client.lookup(directory, &name).await;
                assert_eq!(number(&found), if known.is_some() { 0 } else { libc::ENOENT }, "{what}");
            }
        }
    }

    /// Compares everything.
    pub(crate) async fn compare<P: Protocol>(&self, client: &P, directory: &Handle) {
        let mut names = Vec::new();
        let mut visit = |entry: &Entry<'_>| names.push(entry.name.to_vec());
        client.readdir(directory, false, &mut visit).await.unwrap();
        names.sort();
        assert!(names.iter().eq(self.objects.keys()), "{names:?}, and not {:?}", self.objects.keys());
        for (name, object) in &self.objects {
            let (handle, _) = client.lookup(directory, name).await.unwrap();
            match object {
                Object::Directory => {}
                Object::Symlink(target) => assert_eq!(client.readlink(&handle).await.unwrap(), *target),
                Object::File(content) => {
                    let how =
                        OpenHow { read: true, write: false, create: Create::No, truncate: false, mode: 0 };
                    let file = client.open(directory, name, &how).await.unwrap().file;
                    let mut read = vec![0; content.len() + 1];
                    let mut done = 0;
                    loop {
                        let came = client.read(&file, &mut read[done..], done as u64).await.unwrap();
                        done += came.len;
                        if came.eof {
                            break;
                        }
                    }
                    client.close(file).await.unwrap();
                    assert!(read[..done] == content[..], "content of {}", String::from_utf8_lossy(name));
                }
            }
        }
    }
}

/// Some workers of one client, each in a directory of its own; `seed` makes them differ. Returns what must be there.
pub(crate) async fn work<P: Protocol>(
    client: &P,
    seed: u64,
    workers: u64,
    steps: u32,
) -> Vec<(Vec<u8>, Model)> {
    let root = client.root();
    let tasks = (0..workers).map(|worker| {
        let name = format!("d{seed}-{worker}").into_bytes();
        async move {
            client.mkdir(&root, &name, 0o700).await.unwrap();
            let (directory, _) = client.lookup(&root, &name).await.unwrap();
            let mut model = Model::new(seed << 8 | worker);
            for _ in 0..steps {
                model.step(client, &directory).await;
            }
            (name, model)
        }
    });
    all(tasks).await
}

/// Compares what workers left with what must be there.
pub(crate) async fn check<P: Protocol>(client: &P, models: &[(Vec<u8>, Model)]) {
    for (name, model) in models {
        let (directory, _) = client.lookup(&client.root(), name).await.unwrap();
        model.compare(client, &directory).await;
    }
}
