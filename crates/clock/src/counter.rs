//! The processor's counter of time.

/// Whether it runs at one rate and never stops: on x86-64 the invariant time-stamp counter.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const FEATURES: u32 = 0x8000_0001;
    const POWER: u32 = 0x8000_0007;
    let has_rdtscp = || __cpuid(FEATURES).edx & 1 << 27 != 0;
    let is_invariant = || __cpuid(POWER).edx & 1 << 8 != 0;
    __cpuid(0x8000_0000).eax >= POWER && has_rdtscp() && is_invariant()
}

/// On ARM every processor of 64 bits has one.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_steady() -> bool {
    cfg!(target_arch = "aarch64")
}

#[inline(always)]
pub(crate) fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and it only reads a register.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: Linux lets programs read the virtual counter, and that changes nothing else.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_counts() {
        if is_steady() {
            let first = read();
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(read() > first);
        }
    }
}
