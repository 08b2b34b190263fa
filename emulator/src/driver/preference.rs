//! Launch attributes that only say how fast something is to be: they are checked as a driver checks them,
//! kept by nodes of graphs, and change nothing here.

use std::collections::BTreeMap;

use super::device::{access_policy_window, mem_sync_domains};
use crate::config::Config;

/// Those of a node, by their numbers.
pub(crate) type Preferences = BTreeMap<u32, Value>;

/// `CUlaunchAttributeValue`.
pub(crate) type Value = [u32; 16];

const ACCESS_POLICY_WINDOW: u32 = 1;
const SYNCHRONIZATION_POLICY: u32 = 3;
const CLUSTER_SCHEDULING_POLICY: u32 = 5;
const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
const PRIORITY: u32 = 8;
const MEM_SYNC_DOMAIN_MAP: u32 = 9;
const MEM_SYNC_DOMAIN: u32 = 10;
const SHARED_MEMORY_CARVEOUT: u32 = 14;

/// Whether a launch takes it.
pub(crate) fn is_preference(id: u32) -> bool {
    is_of_node(id)
        || matches!(
            id,
            SYNCHRONIZATION_POLICY | PROGRAMMATIC_STREAM_SERIALIZATION
        )
}

/// Whether a node of a graph has it.
pub(crate) fn is_of_node(id: u32) -> bool {
    matches!(
        id,
        ACCESS_POLICY_WINDOW
            | CLUSTER_SCHEDULING_POLICY
            | PRIORITY
            | MEM_SYNC_DOMAIN_MAP
            | MEM_SYNC_DOMAIN
            | SHARED_MEMORY_CARVEOUT
    )
}

/// What is wrong with a value, in a launch or in a node of a graph (H200).
pub(crate) fn check(config: &Config, id: u32, value: &Value, of_node: bool) -> Result<(), String> {
    match id {
        ACCESS_POLICY_WINDOW => check_window(config, value),
        CLUSTER_SCHEDULING_POLICY if value[0] > 2 && !of_node => Err(format!(
            "there is no cluster scheduling policy {}",
            value[0]
        )),
        MEM_SYNC_DOMAIN_MAP => {
            let [default, remote, ..] = value[0].to_ne_bytes().map(u32::from);
            let count = mem_sync_domains(config);
            if default.max(remote) >= count {
                return Err(format!(
                    "memory-synchronisation domains {default} and {remote} are not among {count}"
                ));
            }
            Ok(())
        }
        SHARED_MEMORY_CARVEOUT if value[0] > 100 => {
            let percent = value[0].cast_signed();
            Err(format!("a carveout of {percent} % is not among 0 to 100"))
        }
        _ => Ok(()),
    }
}

/// `CUaccessPolicyWindow`.
fn check_window(config: &Config, value: &Value) -> Result<(), String> {
    let [_, _, low, high, ratio, hit, miss, ..] = *value;
    let bytes = u64::from(high) << 32 | u64::from(low);
    let most = access_policy_window(config);
    if bytes > u64::from(most) {
        return Err(format!(
            "an access policy window of {bytes} bytes is more than {most}"
        ));
    }
    let ratio = f32::from_bits(ratio);
    // One that is no number is let pass.
    if !ratio.is_nan() && !(0.0..=1.0).contains(&ratio) {
        return Err(format!("a hit ratio of {ratio} is not between 0 and 1"));
    }
    if hit > 2 || miss > 1 {
        return Err(format!(
            "there are no access properties {hit} for hits and {miss} for misses"
        ));
    }
    Ok(())
}
