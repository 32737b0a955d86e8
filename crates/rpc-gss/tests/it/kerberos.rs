//! The system's library, with a KDC.

use std::time::Duration;

use benchmaster_rpc_gss::{
    Acceptor, Established, GssError, Initiator, InitiatorFiles, Mechanism, ServerName,
};

use super::realm::{REALM, SERVER, Within, within};

/// Both sides of a context.
fn pair(realm: &Within, user: &str) -> Result<[Established; 2], GssError> {
    let files = InitiatorFiles { keytab: Some(realm.keytab(user)), ..InitiatorFiles::default() };
    let server = Acceptor::new(Some(&realm.keytab(SERVER)))?;
    let client = Initiator::new(ServerName::Host("localhost".into()), &files)?;
    let (mut client, mut server) = (client.begin(), server.begin());
    let first = client.step(&[])?;
    assert!(first.established.is_none(), "the server has to show who it is");
    let answer = server.step(&first.token)?;
    let last = client.step(&answer.token)?;
    Ok([last.established.unwrap(), answer.established.unwrap()])
}

#[test]
#[ignore = "full tier: needs a KDC"]
fn both_sides_understand_each_other_and_no_one_else() {
    within(
        "kerberos::both_sides_understand_each_other_and_no_one_else",
        &["alice"],
        Duration::from_secs(600),
        |realm| {
            let [client, server] = pair(realm, "alice").unwrap();
            let [_, stranger] = pair(realm, "alice").unwrap();
            assert_eq!(server.peer, format!("alice@{REALM}"));
            let lifetime = client.lifetime.unwrap();
            assert!((590..=600).contains(&lifetime.as_secs()), "{lifetime:?}");
            for (from, to) in [(&client, &server), (&server, &client)] {
                for len in [0, 1, 15, 16, 17, 4096, 1 << 20] {
                    let message: Vec<u8> = (0..len).map(|n: usize| (n * 7) as u8).collect();
                    let mic = from.context.mic(&message).unwrap();
                    to.context.verify(&message, &mic).unwrap();
                    let mut changed = message.clone();
                    changed.push(0);
                    assert!(to.context.verify(&changed, &mic).is_err());
                    assert!(stranger.context.verify(&message, &mic).is_err());
                    assert!(from.context.verify(&message, &mic).is_err(), "not a checksum of the other side");
                    let sealed = from.context.wrap(&message).unwrap();
                    assert_eq!(to.context.unwrap(&sealed).unwrap(), message);
                    // What of a large message is changed does not matter.
                    for at in (0..sealed.len()).step_by(sealed.len().div_ceil(100)) {
                        let mut changed = sealed.clone();
                        changed[at] ^= 4;
                        assert!(to.context.unwrap(&changed).is_err(), "byte {at} of {}", sealed.len());
                    }
                    for cut in 0..sealed.len().min(100) {
                        assert!(to.context.unwrap(&sealed[..cut]).is_err());
                    }
                    assert!(stranger.context.unwrap(&sealed).is_err());
                }
            }
        },
    );
}

#[test]
#[ignore = "full tier: needs a KDC"]
fn what_is_wrong_is_said_in_the_library_s_words() {
    within(
        "kerberos::what_is_wrong_is_said_in_the_library_s_words",
        &["alice"],
        Duration::from_secs(600),
        |realm| {
            let text = Acceptor::new(Some(&realm.file("missing"))).unwrap_err().to_string();
            assert!(text.contains("keytab") && text.contains("missing"), "{text}");
            let step = |server: &str, files: InitiatorFiles| {
                let initiator = Initiator::new(ServerName::Principal(server.into()), &files).unwrap();
                initiator.begin().step(&[]).map(drop).unwrap_err().to_string()
            };
            let keytab = InitiatorFiles { keytab: Some(realm.keytab("alice")), ..InitiatorFiles::default() };
            let text = step("nfs/elsewhere", keytab.clone());
            assert!(text.contains("not found in Kerberos database"), "{text}");
            let text = step(SERVER, InitiatorFiles::default());
            assert!(
                text.contains("No credentials cache found") || text.contains("No Kerberos credentials"),
                "{text}"
            );
            let text = step(SERVER, InitiatorFiles { principal: Some("bob".into()), ..keytab });
            assert!(text.contains("No credentials"), "a principal that is not in the keytab: {text}");
            // Tokens that were changed are refused, and nothing breaks.
            let server = Acceptor::new(Some(&realm.keytab(SERVER))).unwrap();
            let files = InitiatorFiles { keytab: Some(realm.keytab("alice")), ..InitiatorFiles::default() };
            let client = Initiator::new(ServerName::Host("localhost".into()), &files).unwrap();
            let token = client.begin().step(&[]).unwrap().token;
            assert!(server.begin().step(&token).unwrap().established.is_some());
            for at in 0..token.len() {
                let mut changed = token.clone();
                changed[at] ^= 0x55;
                // The names in the clear, by which the key is found, do not matter; what is encrypted does.
                match server.begin().step(&changed) {
                    Ok(step) => {
                        assert!(at < 160, "byte {at} of {}", token.len());
                        let peer = step.established.map(|established| established.peer);
                        assert!(peer.is_none_or(|peer| peer == format!("alice@{REALM}")), "byte {at}");
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
                assert!(server.begin().step(&token[..at]).is_err());
            }
        },
    );
}
