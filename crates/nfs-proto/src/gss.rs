//! RPCSEC_GSS version 1 (RFC 2203): what its credentials and control messages carry.

use crate::v4::RpcGssSvc;
use crate::xdr::Opaque;

/// The only version of RPCSEC_GSS spoken.
pub const VERSION: u32 = 1;
/// The highest sequence number of a context; beyond, another one is needed (RFC 2203 §5.3.3.1).
pub const MAXSEQ: u32 = 0x8000_0000;
/// `GSS_S_COMPLETE`: a context is established.
pub const COMPLETE: u32 = 0;
/// `GSS_S_CONTINUE_NEEDED`: another token is awaited.
pub const CONTINUE_NEEDED: u32 = 1;
/// Longest handle of a context that is taken: what is left of a credential's 400 bytes.
pub const MAX_HANDLE: u32 = 380;

xdr_enum! {
    /// What a call with RPCSEC_GSS is for (`rpc_gss_proc_t`).
    pub enum GssProc {
        /// A call of the program.
        Data = 0,
        /// The first token of a context.
        Init = 1,
        /// A further token.
        ContinueInit = 2,
        /// The context is not needed any more.
        Destroy = 3,
    }
}

xdr_struct! {
    /// Body of the credential (`rpc_gss_cred_vers_1_t`), with the version.
    pub struct GssCredential<'a> {
        /// [`VERSION`].
        pub version: u32,
        /// What the call is for.
        pub procedure: GssProc,
        /// Sequence number of the call within its context.
        pub sequence: u32,
        /// How arguments and results are protected.
        pub service: RpcGssSvc,
        /// Handle of the context, as the server gave it.
        pub handle: Opaque<'a, MAX_HANDLE>,
    }
    /// Result of INIT and CONTINUE_INIT (`rpc_gss_init_res`).
    pub struct GssInitResult<'a> {
        /// Handle of the context.
        pub handle: Opaque<'a>,
        /// Major status of GSS-API.
        pub major: u32,
        /// Minor status, of the mechanism.
        pub minor: u32,
        /// Sequence numbers that may be outstanding.
        pub window: u32,
        /// The token for the client.
        pub token: Opaque<'a>,
    }
    /// Arguments or results with integrity (`rpc_gss_integ_data`). The first one contains the sequence number.
    pub struct GssIntegrity<'a> {
        /// Sequence number and data.
        pub body: Opaque<'a>,
        /// Checksum over them.
        pub checksum: Opaque<'a>,
    }
}
