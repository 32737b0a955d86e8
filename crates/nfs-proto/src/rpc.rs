//! ONC RPC version 2 (RFC 5531): calls, replies, authentication flavours AUTH_NONE and AUTH_SYS.

use crate::xdr::{Decode, Decoder, Encode, Encoder, List, Opaque, XdrError};

/// The only version of the RPC protocol.
pub const RPC_VERSION: u32 = 2;
/// `msg_type` of a call.
pub const CALL: u32 = 0;
/// `msg_type` of a reply.
pub const REPLY: u32 = 1;

xdr_code! {
    /// Authentication flavour (RFC 5531 §8.1).
    pub struct AuthFlavor("AUTH_") {
        /// No authentication.
        NONE = 0,
        /// Numeric user and groups, believed (RFC 5531 appendix A).
        SYS = 1,
        /// Short-hand credential of AUTH_SYS.
        SHORT = 2,
        /// RPCSEC_GSS (RFC 2203).
        RPCSEC_GSS = 6,
        /// RPC over TLS (RFC 9289).
        TLS = 7,
    }
    /// Why a call's credential was refused (RFC 5531 §9, `auth_stat`).
    pub struct AuthStat("AUTH_") {
        /// Success.
        OK = 0,
        /// Bad credential (seal broken).
        BADCRED = 1,
        /// Client must begin a new session.
        REJECTEDCRED = 2,
        /// Bad verifier (seal broken).
        BADVERF = 3,
        /// Verifier expired or replayed.
        REJECTEDVERF = 4,
        /// Rejected for security reasons.
        TOOWEAK = 5,
        /// Bogus response verifier.
        INVALIDRESP = 6,
        /// Reason unknown.
        FAILED = 7,
        /// RPCSEC_GSS: the server has no such context (RFC 2203 §5.3.3.3).
        GSS_CREDPROBLEM = 13,
        /// RPCSEC_GSS: the context is of no use any more (RFC 2203 §5.3.3.3).
        GSS_CTXPROBLEM = 14,
    }
}

xdr_struct! {
    /// A credential or verifier: flavour and up to 400 bytes.
    pub struct OpaqueAuth<'a> {
        /// Authentication flavour.
        pub flavor: AuthFlavor,
        /// Opaque to RPC; its form depends on the flavour.
        pub body: Opaque<'a, 400>,
    }
    /// Body of an AUTH_SYS credential.
    pub struct AuthSys<'a> {
        /// Arbitrary number of the caller.
        pub stamp: u32,
        /// Name of the caller's machine.
        pub machine_name: Opaque<'a, 255>,
        /// Effective user id of the caller.
        pub uid: u32,
        /// Effective group id of the caller.
        pub gid: u32,
        /// Supplementary group ids, 16 at most.
        pub gids: List<'a, u32, 16>,
    }
}

impl<'a> OpaqueAuth<'a> {
    /// AUTH_NONE with an empty body.
    pub const NONE: Self = Self { flavor: AuthFlavor::NONE, body: Opaque(&[]) };

    /// The AUTH_SYS body, decoded.
    pub fn sys(&self) -> Result<AuthSys<'a>, XdrError> {
        Decoder::new(self.body.0).get()
    }
}

/// Header of a call, up to its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeader<'a> {
    /// Transaction number, chosen by the caller.
    pub xid: u32,
    /// RPC version; anything but [`RPC_VERSION`] is to be refused with [`RpcReply::RpcMismatch`].
    pub rpc_version: u32,
    /// RPC program number.
    pub program: u32,
    /// Program version.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// Credential of the caller.
    pub cred: OpaqueAuth<'a>,
    /// Verifier of the credential.
    pub verf: OpaqueAuth<'a>,
}

/// The front of any RPC message, to tell calls from replies on a connection that carries both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A call; its arguments are what is left in the decoder.
    Call(CallHeader<'a>),
    /// A reply; its results, if any, are what is left in the decoder.
    Reply {
        /// Transaction number of the call.
        xid: u32,
        /// What became of it.
        reply: RpcReply<'a>,
    },
}

/// Body of a reply, up to the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcReply<'a> {
    /// Executed; results follow.
    Success(OpaqueAuth<'a>),
    /// The program is not served here.
    ProgUnavail,
    /// The program is, the version is not: lowest and highest served.
    ProgMismatch(u32, u32),
    /// No such procedure.
    ProcUnavail,
    /// The arguments did not decode.
    GarbageArgs,
    /// The server failed (memory and the like).
    SystemErr,
    /// Another RPC version was asked for: lowest and highest spoken.
    RpcMismatch(u32, u32),
    /// The credential was refused.
    AuthError(AuthStat),
    /// An `accept_stat` or `reject_stat` outside RFC 5531.
    Unknown(u32),
}

impl<'a> Decode<'a> for CallHeader<'a> {
    /// After xid and `msg_type` have been read see [`Message`]; this decodes a whole header with both.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        match d.get()? {
            Message::Call(call) => Ok(call),
            Message::Reply { .. } => Err(XdrError::BadValue { what: "msg_type of a call", value: REPLY }),
        }
    }
}

impl Encode for CallHeader<'_> {
    fn encode(&self, e: &mut Encoder) {
        for word in [self.xid, CALL, self.rpc_version, self.program, self.version, self.procedure] {
            e.put(&word);
        }
        e.put(&self.cred);
        e.put(&self.verf);
    }
}

impl<'a> Decode<'a> for Message<'a> {
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let xid = d.get()?;
        match d.get::<u32>()? {
            CALL => {
                let rpc_version = d.get()?;
                if rpc_version != RPC_VERSION {
                    // What follows may have any shape; the version alone decides the answer.
                    let (program, version, procedure) = (0, 0, 0);
                    let (cred, verf) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
                    let call = CallHeader { xid, rpc_version, program, version, procedure, cred, verf };
                    return Ok(Self::Call(call));
                }
                Ok(Self::Call(CallHeader {
                    xid,
                    rpc_version,
                    program: d.get()?,
                    version: d.get()?,
                    procedure: d.get()?,
                    cred: d.get()?,
                    verf: d.get()?,
                }))
            }
            REPLY => Ok(Self::Reply { xid, reply: d.get()? }),
            value => Err(XdrError::BadValue { what: "msg_type", value }),
        }
    }
}

impl<'a> Decode<'a> for RpcReply<'a> {
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match d.get::<u32>()? {
            0 => {
                let verf = d.get()?;
                match d.get::<u32>()? {
                    0 => Self::Success(verf),
                    1 => Self::ProgUnavail,
                    2 => Self::ProgMismatch(d.get()?, d.get()?),
                    3 => Self::ProcUnavail,
                    4 => Self::GarbageArgs,
                    5 => Self::SystemErr,
                    other => Self::Unknown(other),
                }
            }
            1 => match d.get::<u32>()? {
                0 => Self::RpcMismatch(d.get()?, d.get()?),
                1 => Self::AuthError(d.get()?),
                other => Self::Unknown(other),
            },
            value => return Err(XdrError::BadValue { what: "reply_stat", value }),
        })
    }
}

/// Encodes the header of a reply: xid, `REPLY`, and the body up to the results.
pub fn put_reply(e: &mut Encoder, xid: u32, reply: RpcReply<'_>) {
    put_reply_with(e, xid, OpaqueAuth::NONE, reply);
}

/// As [`put_reply`], with this verifier also where the call was accepted and failed.
pub fn put_reply_with(e: &mut Encoder, xid: u32, verf: OpaqueAuth<'_>, reply: RpcReply<'_>) {
    e.put(&xid);
    e.put(&REPLY);
    let accepted = |e: &mut Encoder, verf: OpaqueAuth<'_>, stat: u32| {
        e.put(&0u32);
        e.put(&verf);
        e.put(&stat);
    };
    match reply {
        RpcReply::Success(verf) => accepted(e, verf, 0),
        RpcReply::ProgUnavail => accepted(e, verf, 1),
        RpcReply::ProgMismatch(low, high) => {
            accepted(e, verf, 2);
            e.put(&low);
            e.put(&high);
        }
        RpcReply::ProcUnavail => accepted(e, verf, 3),
        RpcReply::GarbageArgs => accepted(e, verf, 4),
        RpcReply::SystemErr => accepted(e, verf, 5),
        RpcReply::Unknown(stat) => accepted(e, verf, stat),
        RpcReply::RpcMismatch(low, high) => {
            for word in [1, 0, low, high] {
                e.put(&word);
            }
        }
        RpcReply::AuthError(stat) => {
            e.put(&1u32);
            e.put(&1u32);
            e.put(&stat);
        }
    }
}
