//! What the times were taken on, as far as the machine tells.

use std::{
    error::Error,
    fmt, fs,
    time::{SystemTime, UNIX_EPOCH},
};

use gridcall::cudarc::driver::sys;
use gridcall_benches::scene::Scene;

pub(crate) struct Machine {
    device: String,
    /// 1000 × major + 10 × minor.
    cuda: i32,
    driver: String,
    processor: String,
    date: String,
}

impl Machine {
    pub(crate) fn ask(scene: &Scene) -> Result<Machine, Box<dyn Error>> {
        let mut cuda = 0;
        // SAFETY: `cuda` takes the answer.
        unsafe { sys::cuDriverGetVersion(&raw mut cuda) }.result()?;
        Ok(Machine {
            device: scene.context().name()?,
            cuda,
            driver: driver().unwrap_or_else(|| "of unknown version".to_owned()),
            processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            date: date(SystemTime::now()),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, driver {} (CUDA {}.{}), {}, {}; gridcall {}.",
            self.device,
            self.driver,
            self.cuda / 1000,
            self.cuda % 1000 / 10,
            self.processor,
            self.date,
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// The kernel module's version: the first word with a dot in its first line.
fn driver() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let mut words = text.lines().next()?.split_whitespace();
    words.find(|word| word.contains('.')).map(str::to_owned)
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Year, month and day, by Howard Hinnant's `civil_from_days`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_798_761_600, "2027-01-01"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
