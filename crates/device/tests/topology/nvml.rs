//! NVIDIA's management library itself, where it is.

use crossover_device::error::DeviceError;
use crossover_device::topology::facts::NvidiaFacts;
use crossover_device::topology::mesh::nvidia;
use crossover_device::topology::nvml::read;

#[test]
fn facts_are_those_of_the_machine_or_the_library_is_absent() {
    let facts = match read() {
        Ok(facts) => facts,
        Err(DeviceError::Absent(why)) => {
            eprintln!("skipped: needs an NVIDIA driver: {why}");
            assert!(why.contains("libnvidia-ml.so.1"), "{why}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    println!("{}", serde_json::to_string_pretty(&facts).unwrap());
    assert!(!facts.driver.is_empty());
    assert_eq!(facts.pairs.len(), facts.gpus.len() * facts.gpus.len().saturating_sub(1));
    for gpu in &facts.gpus {
        assert!(gpu.uuid.starts_with("GPU-"), "{gpu:?}");
        assert!(gpu.mig || gpu.instances.is_empty(), "{gpu:?}");
    }
    assert!(facts.gpus.is_sorted_by_key(|gpu| gpu.pci), "NVML's order is by PCI address");
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<NvidiaFacts>(&text).unwrap(), facts);
    if !facts.gpus.is_empty() {
        let all: Vec<String> = facts.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        println!("{}", nvidia(&facts, &all).unwrap());
    }
}
