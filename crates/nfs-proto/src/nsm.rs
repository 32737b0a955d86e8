//! Network status monitor version 1 (X/Open XNFS): who wants to hear of whose restart.

use crate::xdr::Opaque;

/// RPC program of the status monitor.
pub const PROGRAM: u32 = 100_024;
/// Version of the program.
pub const VERSION: u32 = 1;

/// Name of a machine.
pub type Name<'a> = Opaque<'a, 1024>;

xdr_code! {
    /// Procedure numbers.
    pub struct Proc("SM_") {
        /// Do nothing.
        NULL = 0,
        /// Would this machine be monitored?
        STAT = 1,
        /// Monitor a machine.
        MON = 2,
        /// Stop monitoring a machine.
        UNMON = 3,
        /// Stop monitoring for a program.
        UNMON_ALL = 4,
        /// Behave as after a restart.
        SIMU_CRASH = 5,
        /// From monitor to monitor: this machine restarted.
        NOTIFY = 6,
    }
}

xdr_enum! {
    /// Result of SM_STAT and SM_MON.
    pub enum ResStat {
        /// The machine is monitored.
        Succ = 0,
        /// It cannot be.
        Fail = 1,
    }
}

xdr_struct! {
    /// Arguments of SM_STAT.
    pub struct SmName<'a> {
        /// Host whose state is monitored.
        pub mon_name: Name<'a>,
    }
    /// Whom to call back, and how.
    pub struct MyId<'a> {
        /// Host of the program.
        pub my_name: Name<'a>,
        /// RPC program number.
        pub my_prog: u32,
        /// RPC program version.
        pub my_vers: u32,
        /// Procedure, taking a [`Status`].
        pub my_proc: u32,
    }
    /// Arguments of SM_UNMON.
    pub struct MonId<'a> {
        /// The machine that is monitored.
        pub mon_name: Name<'a>,
        /// Program to call when the host restarts.
        pub my_id: MyId<'a>,
    }
    /// Arguments of SM_MON.
    pub struct Mon<'a> {
        /// What is monitored for whom.
        pub mon_id: MonId<'a>,
        /// Given back by the notification.
        pub private: [u8; 16],
    }
    /// Result of SM_UNMON and SM_UNMON_ALL.
    pub struct SmStat {
        /// State number of this machine: odd while it is up.
        pub state: i32,
    }
    /// Result of SM_STAT and SM_MON.
    pub struct SmStatRes {
        /// Whether the machine is monitored.
        pub res_stat: ResStat,
        /// State number of this machine: odd while it is up.
        pub state: i32,
    }
    /// Arguments of SM_NOTIFY.
    pub struct StatChge<'a> {
        /// The machine that restarted.
        pub mon_name: Name<'a>,
        /// Its new state number.
        pub state: i32,
    }
    /// Arguments of the procedure that SM_MON asked to be called.
    pub struct Status<'a> {
        /// The machine that restarted.
        pub mon_name: Name<'a>,
        /// Its new state number.
        pub state: i32,
        /// As given to SM_MON.
        pub private: [u8; 16],
    }
}
