//! Network status monitor version 1: the reboot of a client, reported by its own monitor, ends its locks. Hosts are monitored
//! for this server's own locks ([`super::monitor`]), and for no other program.

use benchmaster_nfs_proto::nsm::{Mon, MonId, MyId, Proc, ResStat, SmName, SmStat, SmStatRes, StatChge};

use crate::call::{Call, Refusal, Served};

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    let state = state(call.server.boot);
    match Proc(call.procedure) {
        Proc::NULL => {}
        Proc::STAT => {
            let _: SmName<'_> = call.args()?;
            call.reply.encoder.put(&SmStatRes { res_stat: ResStat::Fail, state });
        }
        Proc::MON => {
            let _: Mon<'_> = call.args()?;
            call.reply.encoder.put(&SmStatRes { res_stat: ResStat::Fail, state });
        }
        Proc::UNMON => {
            let _: MonId<'_> = call.args()?;
            call.reply.encoder.put(&SmStat { state });
        }
        Proc::UNMON_ALL => {
            let _: MyId<'_> = call.args()?;
            call.reply.encoder.put(&SmStat { state });
        }
        // Only meant for tests of monitors on their own machine.
        Proc::SIMU_CRASH => {}
        Proc::NOTIFY => {
            let args: StatChge<'_> = call.args()?;
            super::free_all(call, args.mon_name.0);
        }
        _ => return Err(Refusal::ProcUnavail),
    }
    Ok(0)
}

/// State number of this server: odd, as it is up, and another after every start.
pub(super) fn state(boot: u64) -> i32 {
    ((boot ^ boot >> 32) as i32 & i32::MAX) | 1
}
