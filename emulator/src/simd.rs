//! Runs a job with the widest vector instructions the machine has.
//!
//! The interpreter's inner loop is compiled twice, once for any x86-64 machine and once for those with AVX2
//! and fused multiply-add; both compute the same.

/// A piece of work that is compiled for each set of instructions: `run` has to be `#[inline(always)]`.
pub(crate) trait Job {
    type Output;

    fn run(self) -> Self::Output;
}

/// Runs a job.
#[inline]
pub(crate) fn widest<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: `with_avx2` requires that the processor has AVX2 and FMA and that the system saves their
        // registers; `is_x86_feature_detected!` has just found both.
        return unsafe { with_avx2(job) };
    }
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<J: Job>(job: J) -> J::Output {
    job.run()
}
