//! Lets everyone launch in turn, and takes the time.

use std::{error::Error, fmt, time::Instant};

use gridcall_benches::{
    line_up::{LineUp, Way},
    measured,
    scene::Scene,
};

use crate::statistics::median;

/// How often everyone launches.
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) batches: usize,
    pub(crate) launches: usize,
    /// Whether the time is that until the device is done.
    pub(crate) to_the_end: bool,
}

/// What one contender took.
pub(crate) struct Times {
    pub(crate) way: Way,
    /// The median of each round's batches, in nanoseconds a launch.
    pub(crate) rounds: Vec<f64>,
}

impl Plan {
    /// The same plan in smaller batches, for launches that take many entries of the queue each.
    pub(crate) fn for_recorded_uses(&self) -> Plan {
        Plan {
            launches: self.launches.div_ceil(16),
            ..*self
        }
    }

    /// The same plan in smaller batches, for launches of graphs.
    pub(crate) fn for_graphs(&self) -> Plan {
        Plan {
            launches: self.launches.div_ceil(10),
            ..*self
        }
    }

    /// The same plan, with the time taken until the device is done.
    pub(crate) fn to_the_end(&self) -> Plan {
        Plan {
            to_the_end: true,
            ..*self
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            rounds,
            batches,
            launches,
            ..
        } = self;
        write!(
            f,
            "{rounds} rounds of {batches} batches of {launches} launches each"
        )
    }
}

/// Times everyone by this plan, after one round of warm-up.
pub(crate) fn time(
    scene: &Scene,
    mut line_up: LineUp,
    plan: &Plan,
) -> Result<Vec<Times>, Box<dyn Error>> {
    let mut times: Vec<Times> = line_up
        .iter()
        .map(|&(way, _)| Times {
            way,
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..=plan.rounds {
        let mut batches = vec![Vec::with_capacity(plan.batches); line_up.len()];
        for batch in 0..plan.batches {
            // Another one begins each time, so nobody always follows the same.
            for turn in 0..line_up.len() {
                let index = (turn + batch + round) % line_up.len();
                let contender = &mut *line_up[index].1;
                scene.stream().synchronize()?;
                let start = Instant::now();
                measured(contender, plan.launches)?;
                if plan.to_the_end {
                    scene.stream().synchronize()?;
                }
                let time = start.elapsed();
                batches[index].push(nanoseconds(time, plan.launches));
            }
        }
        scene.stream().synchronize()?;
        if round > 0 {
            for (times, mut batches) in times.iter_mut().zip(batches) {
                times.rounds.push(median(&mut batches));
            }
        }
    }
    Ok(times)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the number of launches is small"
)]
fn nanoseconds(time: std::time::Duration, launches: usize) -> f64 {
    time.as_secs_f64() * 1e9 / launches as f64
}
