//! Whether the registers of threads stay what they are while the kernel switches between them.

use std::time::{Duration, Instant};

/// Prints whether threads found their registers as they had left them.
pub(super) fn check() {
    let until = Instant::now() + Duration::from_millis(500);
    let threads: Vec<_> = (1..=6u8).map(|number| std::thread::spawn(move || keeps(number, until))).collect();
    let results: Vec<Result<u64, String>> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    match results.into_iter().collect::<Result<Vec<u64>, String>>() {
        Ok(rounds) => println!("registers {} kept over {} rounds", width(), rounds.iter().sum::<u64>()),
        Err(lost) => println!("registers {} lost: {lost}", width()),
    }
}

#[cfg(target_arch = "x86_64")]
fn width() -> &'static str {
    match () {
        () if is_x86_feature_detected!("avx512f") => "zmm",
        () if is_x86_feature_detected!("avx") => "ymm",
        () => "xmm",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn width() -> &'static str {
    "none"
}

/// Fills wide registers with the number, lets other threads run, and looks.
#[cfg(target_arch = "x86_64")]
fn keeps(number: u8, until: Instant) -> Result<u64, String> {
    let mut rounds = 0;
    while Instant::now() < until {
        let found = match width() {
            // SAFETY: the processor has it, as `width` found.
            "zmm" => unsafe { through_zmm(number) },
            // SAFETY: as above.
            "ymm" => unsafe { through_ymm(number) },
            _ => [number; 64],
        };
        if found != [number; 64] {
            return Err(format!("thread {number} found {found:?} after {rounds} rounds"));
        }
        rounds += 1;
    }
    Ok(rounds)
}

#[cfg(not(target_arch = "x86_64"))]
fn keeps(_number: u8, _until: Instant) -> Result<u64, String> {
    Ok(0)
}

/// Number of sched_yield(2).
#[cfg(target_arch = "x86_64")]
const YIELD: u64 = 24;

/// The bytes in the last register, which only AVX-512 has, after another thread may have run.
///
/// # Safety
/// The processor needs AVX-512.
#[cfg(target_arch = "x86_64")]
unsafe fn through_zmm(number: u8) -> [u8; 64] {
    let from = [number; 64];
    let mut to = [0u8; 64];
    // SAFETY: both arrays are as large as the register; the system call takes nothing and changes nothing but rax, rcx and r11.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm31, [{from}]",
            "vmovdqu64 zmm3, [{from}]",
            "syscall",
            "vpandq zmm31, zmm31, zmm3",
            "vmovdqu64 [{to}], zmm31",
            from = in(reg) from.as_ptr(),
            to = in(reg) to.as_mut_ptr(),
            inlateout("rax") YIELD => _,
            out("rcx") _, out("r11") _, out("xmm3") _, out("zmm31") _,
        );
    }
    to
}

/// The bytes in a register of AVX, twice.
///
/// # Safety
/// The processor needs AVX.
#[cfg(target_arch = "x86_64")]
unsafe fn through_ymm(number: u8) -> [u8; 64] {
    let from = [number; 64];
    let mut to = [0u8; 64];
    // SAFETY: both arrays are twice as large as the register; the system call changes nothing but rax, rcx and r11.
    unsafe {
        std::arch::asm!(
            "vmovdqu ymm3, [{from}]",
            "syscall",
            "vmovdqu [{to}], ymm3",
            "vmovdqu [{to} + 32], ymm3",
            from = in(reg) from.as_ptr(),
            to = in(reg) to.as_mut_ptr(),
            inlateout("rax") YIELD => _,
            out("rcx") _, out("r11") _, out("xmm3") _,
        );
    }
    to
}
