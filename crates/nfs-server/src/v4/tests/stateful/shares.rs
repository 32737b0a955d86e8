//! Share reservations against a model that tries everything.

use proptest::prelude::*;

use super::*;

const OWNERS: usize = 3;

/// The OPENs in effect: per owner, their modes.
#[derive(Default)]
struct Model([Vec<(u32, u32)>; OWNERS]);

impl Model {
    fn conflicts(&self, access: u32, deny: u32) -> bool {
        self.0.iter().flatten().any(|(a, d)| access & d != 0 || a & deny != 0)
    }

    fn union<'a>(opens: impl Iterator<Item = &'a (u32, u32)>) -> (u32, u32) {
        opens.fold((0, 0), |(a, d), (access, deny)| (a | access, d | deny))
    }

    /// Whether some of an owner's OPENs have together exactly these modes.
    fn has_subset(&self, owner: usize, modes: (u32, u32)) -> bool {
        let opens = &self.0[owner];
        (1u32..1 << opens.len()).any(|set| {
            let chosen = opens.iter().enumerate().filter(|(n, _)| set & 1 << n != 0).map(|(_, open)| open);
            Self::union(chosen) == modes
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agree_with_the_model(
        minor in 0..2u32,
        steps in prop::collection::vec((0..OWNERS, 0..4u8, 1..4u32, prop_oneof![4 => Just(0), 1 => 0..4u32]), 1..40)
    ) {
        let server = server_without_delegations();
        let mut owners: Vec<_> = (0..OWNERS).map(|n| Holder::new(&server, minor, n as u16)).collect();
        let mut stateids = [None; OWNERS];
        let mut model = Model::default();
        for (n, what, access, deny) in steps {
            let c = &mut owners[n];
            match (what, stateids[n]) {
                (2, Some(stateid)) => {
                    prop_assert!(c.close("file", stateid).is_ok());
                    stateids[n] = None;
                    model.0[n].clear();
                }
                (3, Some(stateid)) => match c.downgrade("file", stateid, access, deny) {
                    Ok(now) => {
                        prop_assert!(model.has_subset(n, (access, deny)));
                        model.0[n].retain(|(a, d)| a & !access == 0 && d & !deny == 0);
                        stateids[n] = Some(now);
                    }
                    Err(status) => {
                        prop_assert_eq!(status, Nfsstat4::INVAL);
                        prop_assert!(!model.has_subset(n, (access, deny)));
                    }
                },
                // The model tries all subsets: not too many OPENs.
                _ if model.0[n].len() < 8 => match c.try_open("file", access, deny) {
                    Ok(opened) => {
                        prop_assert!(!model.conflicts(access, deny));
                        model.0[n].push((access, deny));
                        stateids[n] = Some(opened.stateid);
                    }
                    Err(status) => {
                        prop_assert_eq!(status, Nfsstat4::SHARE_DENIED);
                        prop_assert!(model.conflicts(access, deny));
                    }
                },
                _ => {}
            }
            let id = c.c.id("/export/file");
            let all = Model::union(model.0.iter().flatten());
            for write in [false, true] {
                let bit = if write { W } else { R };
                prop_assert_eq!(server.state.denied(id, write), all.1 & bit != 0);
                for (opens, stateid) in model.0.iter().zip(stateids) {
                    let Some(stateid) = stateid else { continue };
                    let right = server.state.read(id).files().check_io(minor, None, stateid, id, write);
                    prop_assert_eq!(right.is_ok(), Model::union(opens.iter()).0 & bit != 0);
                }
            }
        }
        for (c, stateid) in owners.iter_mut().zip(stateids) {
            if let Some(stateid) = stateid {
                prop_assert!(c.close("file", stateid).is_ok());
            }
        }
        prop_assert_eq!(server.state.all().files().counts().files, 0);
    }
}
