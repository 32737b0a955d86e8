//! COMPOUND: operations as the server decodes and the client encodes them, one at a time.

use super::*;
use crate::xdr::{Decode, Decoder, Encode, Encoder, Opaque, XdrError};

/// Argument and result enumerations from one table: `number variant(arguments) -> result`, and the numbers of
/// operations that neither the client nor the server of this project implements, of which nothing but the number is
/// known.
macro_rules! operations {
    (
        $(#[$am:meta])* args $args:ident, $(#[$rm:meta])* results $results:ident, numbers $opnum:ident;
        unimplemented $( $u:ident )*;
        $( $n:ident $v:ident $(($a:ty))? -> $r:ty; )*
    ) => {
        $(#[$am])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub enum $args<'a> {
            $( #[doc = concat!("Operation ", stringify!($n), ".")] $v $(($a))?, )*
            /// An operation that is not implemented here (NFS4ERR_NOTSUPP); its arguments are not decoded, and so
            /// nothing after it.
            Unimplemented(#[cfg_attr(test, arbitrary(with = unimplemented_number(&[$($opnum::$u),*])))] $opnum),
            /// An operation number that no minor version has; what follows cannot be decoded.
            Illegal(#[cfg_attr(test, arbitrary(with = $crate::macros::unnamed))] u32),
        }

        impl $args<'_> {
            /// Number of the operation; that of results for illegal ones.
            pub const fn opnum(&self) -> $opnum {
                match self {
                    $( Self::$v { .. } => $opnum::$n, )*
                    Self::Unimplemented(opnum) => *opnum,
                    Self::Illegal(_) => $opnum::ILLEGAL,
                }
            }
        }

        impl<'a> $args<'a> {
            /// Decodes the arguments of operation `opnum`.
            #[inline]
            pub fn decode_body(opnum: $opnum, d: &mut Decoder<'a>) -> Result<Self, XdrError> {
                Ok(match opnum {
                    $( $opnum::$n => operations!(@decode d $v $(($a))?), )*
                    $( $opnum::$u )|* => Self::Unimplemented(opnum),
                    other => Self::Illegal(other.0),
                })
            }
        }

        impl<'a> Decode<'a> for $args<'a> {
            #[inline]
            fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
                let opnum = d.get()?;
                Self::decode_body(opnum, d)
            }
        }

        impl Encode for $args<'_> {
            #[inline]
            fn encode(&self, e: &mut Encoder) {
                match self {
                    $( operations!(@pattern body $v $(($a))?) => {
                        e.put(&$opnum::$n);
                        operations!(@put e body $(($a))?);
                    } )*
                    Self::Unimplemented(opnum) => e.put(opnum),
                    Self::Illegal(number) => e.put(number),
                }
            }
        }

        $(#[$rm])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub enum $results<'a> {
            $( #[doc = concat!("Operation ", stringify!($n), ".")] $v(
                #[cfg_attr(test, arbitrary(with = super::types::arbitrary_result))] $r
            ), )*
            /// An operation that is not implemented here, and the error with which it failed.
            Unimplemented(
                #[cfg_attr(test, arbitrary(with = unimplemented_number(&[$($opnum::$u),*])))] $opnum,
                #[cfg_attr(test, arbitrary(with = super::types::arbitrary_error))] Nfsstat4,
            ),
            /// The operation does not exist.
            Illegal(#[cfg_attr(test, arbitrary(with = super::types::arbitrary_error))] Nfsstat4),
        }

        impl $results<'_> {
            /// Number of the operation.
            pub const fn opnum(&self) -> $opnum {
                match self {
                    $( Self::$v(_) => $opnum::$n, )*
                    Self::Unimplemented(opnum, _) => *opnum,
                    Self::Illegal(_) => $opnum::ILLEGAL,
                }
            }

            /// Status of the operation.
            pub fn status(&self) -> Nfsstat4 {
                match self {
                    $( Self::$v(result) => result.status(), )*
                    Self::Unimplemented(_, status) | Self::Illegal(status) => *status,
                }
            }
        }

        impl<'a> Decode<'a> for $results<'a> {
            #[inline]
            fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
                Ok(match d.get()? {
                    $( $opnum::$n => Self::$v(d.get()?), )*
                    opnum @ ($( $opnum::$u )|*) => match d.get()? {
                        Nfsstat4::OK => {
                            return Err(XdrError::BadValue { what: "result of an operation", value: opnum.0 });
                        }
                        status => Self::Unimplemented(opnum, status),
                    },
                    $opnum::ILLEGAL => Self::Illegal(d.get()?),
                    other => {
                        return Err(XdrError::BadValue { what: "operation number of a result", value: other.0 });
                    }
                })
            }
        }

        impl Encode for $results<'_> {
            #[inline]
            fn encode(&self, e: &mut Encoder) {
                e.put(&self.opnum());
                match self {
                    $( Self::$v(result) => e.put(result), )*
                    Self::Unimplemented(_, status) | Self::Illegal(status) => e.put(status),
                }
            }
        }
    };
    (@decode $d:ident $v:ident ($a:ty)) => { Self::$v($d.get::<$a>()?) };
    (@decode $d:ident $v:ident) => { Self::$v };
    (@pattern $body:ident $v:ident ($a:ty)) => { Self::$v($body) };
    (@pattern $body:ident $v:ident) => { Self::$v };
    (@put $e:ident $body:ident ($a:ty)) => { $e.put($body) };
    (@put $e:ident $body:ident) => {};
}

#[cfg(test)]
fn unimplemented_number<T: Copy>(
    numbers: &'static [T],
) -> impl Fn(&mut arbitrary::Unstructured<'_>) -> arbitrary::Result<T> {
    move |u| u.choose(numbers).copied()
}

/// Result that has a body where it succeeded.
pub type Res<T = ()> = Result<T, Nfsstat4>;

operations! {
    /// Arguments of an operation (`nfs_argop4`).
    args Argop,
    /// Result of an operation (`nfs_resop4`).
    results Resop,
    numbers Opnum;
    unimplemented GETDEVICEINFO GETDEVICELIST LAYOUTCOMMIT LAYOUTGET LAYOUTRETURN COPY_NOTIFY
        LAYOUTERROR LAYOUTSTATS OFFLOAD_CANCEL OFFLOAD_STATUS WRITE_SAME;
    ACCESS Access(AccessArgs) -> Res<AccessOk>;
    CLOSE Close(CloseArgs) -> Res<CloseOk>;
    COMMIT Commit(CommitArgs) -> Res<CommitOk>;
    CREATE Create(CreateArgs<'a>) -> Res<CreateOk>;
    DELEGPURGE Delegpurge(DelegpurgeArgs) -> Res;
    DELEGRETURN Delegreturn(DelegreturnArgs) -> Res;
    GETATTR Getattr(GetattrArgs) -> Res<GetattrOk<'a>>;
    GETFH Getfh -> Res<GetfhOk<'a>>;
    LINK Link(LinkArgs<'a>) -> Res<LinkOk>;
    LOCK Lock(LockArgs<'a>) -> LockRes<'a>;
    LOCKT Lockt(LocktArgs<'a>) -> LocktRes<'a>;
    LOCKU Locku(LockuArgs) -> Res<LockuOk>;
    LOOKUP Lookup(LookupArgs<'a>) -> Res;
    LOOKUPP Lookupp -> Res;
    NVERIFY Nverify(VerifyArgs<'a>) -> Res;
    OPEN Open(OpenArgs<'a>) -> Res<OpenOk<'a>>;
    OPENATTR Openattr(OpenattrArgs) -> Res;
    OPEN_CONFIRM OpenConfirm(OpenConfirmArgs) -> Res<OpenConfirmOk>;
    OPEN_DOWNGRADE OpenDowngrade(OpenDowngradeArgs) -> Res<OpenDowngradeOk>;
    PUTFH Putfh(PutfhArgs<'a>) -> Res;
    PUTPUBFH Putpubfh -> Res;
    PUTROOTFH Putrootfh -> Res;
    READ Read(ReadArgs) -> Res<ReadOk<'a>>;
    READDIR Readdir(ReaddirArgs) -> Res<ReaddirOk<'a>>;
    READLINK Readlink -> Res<ReadlinkOk<'a>>;
    REMOVE Remove(RemoveArgs<'a>) -> Res<RemoveOk>;
    RENAME Rename(RenameArgs<'a>) -> Res<RenameOk>;
    RENEW Renew(RenewArgs) -> Res;
    RESTOREFH Restorefh -> Res;
    SAVEFH Savefh -> Res;
    SECINFO Secinfo(SecinfoArgs<'a>) -> Res<SecinfoOk<'a>>;
    SETATTR Setattr(SetattrArgs<'a>) -> SetattrRes;
    SETCLIENTID Setclientid(SetclientidArgs<'a>) -> SetclientidRes<'a>;
    SETCLIENTID_CONFIRM SetclientidConfirm(SetclientidConfirmArgs) -> Res;
    VERIFY Verify(VerifyArgs<'a>) -> Res;
    WRITE Write(WriteArgs<'a>) -> Res<WriteOk>;
    RELEASE_LOCKOWNER ReleaseLockowner(ReleaseLockownerArgs<'a>) -> Res;
    BACKCHANNEL_CTL BackchannelCtl(BackchannelCtlArgs<'a>) -> Res;
    BIND_CONN_TO_SESSION BindConnToSession(BindConnToSessionArgs) -> Res<BindConnToSessionOk>;
    EXCHANGE_ID ExchangeId(ExchangeIdArgs<'a>) -> Res<ExchangeIdOk<'a>>;
    CREATE_SESSION CreateSession(CreateSessionArgs<'a>) -> Res<CreateSessionOk>;
    DESTROY_SESSION DestroySession(DestroySessionArgs) -> Res;
    FREE_STATEID FreeStateid(FreeStateidArgs) -> Res;
    SECINFO_NO_NAME SecinfoNoName(SecinfoStyle4) -> Res<SecinfoOk<'a>>;
    SEQUENCE Sequence(SequenceArgs) -> Res<SequenceOk>;
    SET_SSV SetSsv(SetSsvArgs<'a>) -> Res<SetSsvOk<'a>>;
    TEST_STATEID TestStateid(TestStateidArgs<'a>) -> Res<TestStateidOk<'a>>;
    GET_DIR_DELEGATION GetDirDelegation(GetDirDelegationArgs) -> Res<GetDirDelegationOk>;
    WANT_DELEGATION WantDelegation(WantDelegationArgs) -> Res<OpenDelegation4<'a>>;
    DESTROY_CLIENTID DestroyClientid(DestroyClientidArgs) -> Res;
    RECLAIM_COMPLETE ReclaimComplete(ReclaimCompleteArgs) -> Res;
    ALLOCATE Allocate(AllocateArgs) -> Res;
    COPY Copy(CopyArgs<'a>) -> CopyRes;
    DEALLOCATE Deallocate(DeallocateArgs) -> Res;
    IO_ADVISE IoAdvise(IoAdviseArgs) -> Res<IoAdviseOk>;
    READ_PLUS ReadPlus(ReadPlusArgs) -> Res<ReadPlusOk<'a>>;
    SEEK Seek(SeekArgs) -> Res<SeekOk>;
    CLONE Clone(CloneArgs) -> Res;
    GETXATTR Getxattr(GetxattrArgs<'a>) -> Res<GetxattrOk<'a>>;
    SETXATTR Setxattr(SetxattrArgs<'a>) -> Res<SetxattrOk>;
    LISTXATTRS Listxattrs(ListxattrsArgs) -> Res<ListxattrsOk<'a>>;
    REMOVEXATTR Removexattr(RemovexattrArgs<'a>) -> Res<RemovexattrOk>;
}

operations! {
    /// Arguments of a callback operation (`nfs_cb_argop4`).
    args CbArgop,
    /// Result of a callback operation (`nfs_cb_resop4`).
    results CbResop,
    numbers CbOpnum;
    unimplemented LAYOUTRECALL NOTIFY_DEVICEID OFFLOAD;
    GETATTR Getattr(CbGetattrArgs<'a>) -> Res<CbGetattrOk<'a>>;
    RECALL Recall(CbRecallArgs<'a>) -> Res;
    NOTIFY Notify(CbNotifyArgs<'a>) -> Res;
    PUSH_DELEG PushDeleg(CbPushDelegArgs<'a>) -> Res;
    RECALL_ANY RecallAny(CbRecallAnyArgs) -> Res;
    RECALLABLE_OBJ_AVAIL RecallableObjAvail(CbRecallAnyArgs) -> Res;
    RECALL_SLOT RecallSlot(CbRecallSlotArgs) -> Res;
    SEQUENCE Sequence(CbSequenceArgs<'a>) -> Res<CbSequenceOk>;
    WANTS_CANCELLED WantsCancelled(CbWantsCancelledArgs) -> Res;
    NOTIFY_LOCK NotifyLock(CbNotifyLockArgs<'a>) -> Res;
}

xdr_struct! {
    /// Front of the arguments of COMPOUND; `count` operations follow.
    pub struct CompoundHeader<'a> {
        /// Any text; comes back in the result.
        pub tag: Utf8<'a>,
        /// Minor version of NFSv4: 0, 1 or 2.
        pub minorversion: u32,
        /// Number of operations.
        pub count: u32,
    }
    /// Front of the arguments of CB_COMPOUND; `count` operations follow.
    pub struct CbCompoundHeader<'a> {
        /// Chosen by the caller and returned unchanged.
        pub tag: Utf8<'a>,
        /// Minor version of NFSv4: 0, 1 or 2.
        pub minorversion: u32,
        /// Number that the client gave with SETCLIENTID (4.0).
        pub callback_ident: u32,
        /// Number of operations.
        pub count: u32,
    }
    /// Front of the results of COMPOUND and CB_COMPOUND; `count` results follow.
    pub struct CompoundResHeader<'a> {
        /// Status of the last operation.
        pub status: Nfsstat4,
        /// Text of the call.
        pub tag: Utf8<'a>,
        /// Number of results.
        pub count: u32,
    }
}

/// Arguments of COMPOUND with operations that are not decoded yet.
#[derive(Debug, Clone, Copy)]
pub struct CompoundArgs<'a> {
    /// Any text; comes back in the result.
    pub tag: Opaque<'a>,
    /// Minor version of NFSv4: 0, 1 or 2.
    pub minorversion: u32,
    /// Operations, not decoded yet.
    pub ops: Ops<'a>,
}

impl<'a> Decode<'a> for CompoundArgs<'a> {
    /// Takes all that is left of the message.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let CompoundHeader { tag, minorversion, count } = d.get()?;
        let decoder = std::mem::replace(d, Decoder::new(&[]));
        Ok(Self { tag, minorversion, ops: Ops { decoder, left: count, minor: minorversion } })
    }
}

/// Operations of a COMPOUND, decoded one by one.
#[derive(Debug, Clone, Copy)]
pub struct Ops<'a> {
    decoder: Decoder<'a>,
    left: u32,
    minor: u32,
}

/// An operation that cannot be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadOp {
    /// Number for its result.
    pub opnum: Opnum,
    /// `BADXDR`, `OP_ILLEGAL`, or `NOTSUPP` for one that the minor version has given up (RFC 8881 §16.2.3).
    pub status: Nfsstat4,
}

impl<'a> Ops<'a> {
    /// Operations still to come, as the call claims.
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// Number of the next operation, without taking it.
    pub fn peek(&self) -> Option<Opnum> {
        let mut ahead = self.decoder;
        (self.left > 0).then(|| ahead.get().ok()).flatten()
    }

    /// Bytes not yet decoded.
    pub fn rest(&self) -> &'a [u8] {
        self.decoder.rest()
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Argop<'a>, BadOp>;

    /// Nothing follows an operation that cannot be executed.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let illegal = |status| BadOp { opnum: Opnum::ILLEGAL, status };
        let bad = match self.decoder.get::<Opnum>() {
            Err(_) => illegal(Nfsstat4::BADXDR),
            Ok(opnum) if opnum.min_minor() > self.minor => illegal(Nfsstat4::OP_ILLEGAL),
            Ok(opnum) if opnum.max_minor() < self.minor => BadOp { opnum, status: Nfsstat4::NOTSUPP },
            Ok(opnum) => match Argop::decode_body(opnum, &mut self.decoder) {
                Ok(Argop::Illegal(_)) => illegal(Nfsstat4::OP_ILLEGAL),
                Ok(op) => {
                    if matches!(op, Argop::Unimplemented(_)) {
                        self.left = 0;
                    }
                    return Some(Ok(op));
                }
                Err(_) => BadOp { opnum, status: Nfsstat4::BADXDR },
            },
        };
        self.left = 0;
        Some(Err(bad))
    }
}

/// Results of COMPOUND, decoded one by one.
#[derive(Debug, Clone, Copy)]
pub struct CompoundRes<'a> {
    /// Status of the last operation.
    pub status: Nfsstat4,
    /// Text of the call.
    pub tag: Opaque<'a>,
    /// Results of the operations executed, not decoded yet.
    pub results: Items<'a>,
}

/// Arguments of CB_COMPOUND.
#[derive(Debug, Clone, Copy)]
pub struct CbCompoundArgs<'a> {
    /// Chosen by the caller and returned unchanged.
    pub tag: Opaque<'a>,
    /// Minor version of NFSv4: 0, 1 or 2.
    pub minorversion: u32,
    /// Number that the client gave with SETCLIENTID (4.0).
    pub callback_ident: u32,
    /// Operations, not decoded yet.
    pub ops: Items<'a>,
}

impl<'a> Decode<'a> for CompoundRes<'a> {
    /// Takes all that is left of the message.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let CompoundResHeader { status, tag, count } = d.get()?;
        Ok(Self {
            status,
            tag,
            results: Items { decoder: std::mem::replace(d, Decoder::new(&[])), left: count },
        })
    }
}

impl<'a> Decode<'a> for CbCompoundArgs<'a> {
    /// Takes all that is left of the message.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let CbCompoundHeader { tag, minorversion, callback_ident, count } = d.get()?;
        let ops = Items { decoder: std::mem::replace(d, Decoder::new(&[])), left: count };
        Ok(Self { tag, minorversion, callback_ident, ops })
    }
}

/// Operations or results that are not decoded yet; the caller says what they are.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a> {
    decoder: Decoder<'a>,
    left: u32,
}

impl<'a> Items<'a> {
    /// Items still to come, as the message claims.
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// Takes the next one as a `T` ([`Resop`], [`CbArgop`], [`CbResop`]); after an error nothing follows.
    pub fn take<T: Decode<'a>>(&mut self) -> Option<Result<T, XdrError>> {
        self.left = self.left.checked_sub(1)?;
        let item = self.decoder.get();
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compound(minorversion: u32, count: u32, ops: &[Argop<'_>], tail: &[u8]) -> Vec<u8> {
        let mut e = Encoder::new();
        e.put(&CompoundHeader { tag: "t".into(), minorversion, count });
        ops.iter().for_each(|op| e.put(op));
        e.raw(tail);
        e.buffer().to_vec()
    }

    fn outcomes(bytes: &[u8]) -> Vec<Result<Opnum, (Opnum, Nfsstat4)>> {
        let args: CompoundArgs<'_> = Decoder::new(bytes).get().unwrap();
        args.ops.map(|op| op.map(|op| op.opnum()).map_err(|bad| (bad.opnum, bad.status))).collect()
    }

    #[test]
    fn an_operation_that_does_not_decode_fails_alone() {
        let lock = [0, 0, 0, 12, 0, 0, 0, 9];
        let bytes = compound(1, 3, &[Argop::Putrootfh], &lock);
        assert_eq!(outcomes(&bytes), [Ok(Opnum::PUTROOTFH), Err((Opnum::LOCK, Nfsstat4::BADXDR))]);
        // Fewer operations than claimed.
        let bytes = compound(0, 5, &[Argop::Savefh], &[]);
        assert_eq!(outcomes(&bytes), [Ok(Opnum::SAVEFH), Err((Opnum::ILLEGAL, Nfsstat4::BADXDR))]);
        assert_eq!(outcomes(&compound(0, u32::MAX, &[], &[0, 0])), [Err((Opnum::ILLEGAL, Nfsstat4::BADXDR))]);
    }

    #[test]
    fn operations_belong_to_minor_versions() {
        let renew = Argop::Renew(RenewArgs { clientid: 1 });
        let complete = Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false });
        let get = Argop::Getxattr(GetxattrArgs { name: "user.x".into() });
        let illegal = Err((Opnum::ILLEGAL, Nfsstat4::OP_ILLEGAL));
        for (minor, op, expected) in [
            (0, renew, Ok(Opnum::RENEW)),
            (1, renew, Err((Opnum::RENEW, Nfsstat4::NOTSUPP))),
            (0, complete, illegal),
            (1, complete, Ok(Opnum::RECLAIM_COMPLETE)),
            (1, get, illegal),
            (2, get, Ok(Opnum::GETXATTR)),
            (2, Argop::Illegal(2), illegal),
            (2, Argop::Illegal(10_044), illegal),
            (2, Argop::Illegal(76), illegal),
            (2, Argop::Illegal(u32::MAX), illegal),
        ] {
            assert_eq!(outcomes(&compound(minor, 1, &[op], &[])), [expected], "{op:?} in 4.{minor}");
        }
    }

    #[test]
    fn an_operation_that_is_not_implemented_is_the_last() {
        let layoutget = [&[0, 0, 0, 50][..], &[0xff; 40]].concat();
        let bytes = compound(1, 3, &[Argop::Putrootfh], &layoutget);
        assert_eq!(outcomes(&bytes), [Ok(Opnum::PUTROOTFH), Ok(Opnum::LAYOUTGET)]);
        let results = [Opnum::LAYOUTGET.0.to_be_bytes(), Nfsstat4::OK.0.to_be_bytes()].concat();
        assert!(Decoder::new(&results).get::<Resop<'_>>().is_err(), "a success has a body that is not known");
    }

    #[test]
    fn every_operation_number_has_arguments_and_a_result() {
        for &opnum in Opnum::ALL.iter().filter(|n| **n != Opnum::ILLEGAL) {
            let op = Argop::decode_body(opnum, &mut Decoder::new(&[0; 400]));
            assert!(!matches!(op, Ok(Argop::Illegal(_))), "{opnum}");
            let mut bytes = opnum.0.to_be_bytes().to_vec();
            bytes.extend_from_slice(&Nfsstat4::STALE.0.to_be_bytes());
            bytes.extend_from_slice(&[0; 4]);
            let result: Resop<'_> = Decoder::new(&bytes).get().unwrap();
            assert_eq!((result.opnum(), result.status()), (opnum, Nfsstat4::STALE));
        }
    }

    #[test]
    fn results_with_bodies_beside_errors() {
        let owner = LockOwner4 { clientid: 7, owner: "o".into() };
        let denied = LockDenied { offset: 1, length: 2, locktype: LockType4::Write, owner };
        let attrsset = Bitmap4::of(&[4]);
        let results = [
            Resop::Lock(LockRes::Denied(denied)),
            Resop::Lockt(LocktRes::Ok(())),
            Resop::Setattr(SetattrRes { status: Nfsstat4::PERM, attrsset }),
            Resop::Copy(CopyRes::OffloadNoReqs(CopyRequirements4 { consecutive: true, synchronous: true })),
            Resop::Unimplemented(Opnum::LAYOUTGET, Nfsstat4::NOTSUPP),
            Resop::Read(Err(Nfsstat4::LOCKED)),
        ];
        let mut e = Encoder::new();
        e.put(&CompoundResHeader { status: Nfsstat4::LOCKED, tag: "".into(), count: results.len() as u32 });
        results.iter().for_each(|result| e.put(result));
        let mut res: CompoundRes<'_> = Decoder::new(e.buffer()).get().unwrap();
        for expected in results {
            assert_eq!(res.results.take().unwrap(), Ok(expected));
        }
        assert!(res.results.take::<Resop<'_>>().is_none());
    }
}
