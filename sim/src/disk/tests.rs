//! The simulated disk keeps the seam's rules, and loses exactly what the seam does not promise.

use simurgh_kernel::core;
use simurgh_kernel::disk::{Failure, Sync, conformance};

use super::*;

fn on_disk<F: Future>(body: impl FnOnce(Platter) -> F) -> F::Output {
    on_faulty_disk(0, Faults::default(), body)
}

fn on_faulty_disk<F: Future>(seed: u64, faults: Faults, body: impl FnOnce(Platter) -> F) -> F::Output {
    core::run(body(Platter::new(seed, faults))).unwrap()
}

#[test]
fn the_simulated_disk_conforms() {
    on_disk(|platter| async move { conformance::run(&platter.mount()).await }).unwrap();
}

#[test]
fn synced_data_under_a_synced_name_survives_power_loss() {
    for seed in 0..30 {
        on_faulty_disk(seed, Faults::default(), |platter| async move {
            let disk = platter.mount();
            let mut log = disk.create("log").await.unwrap();
            log.append(vec![1; 700], Sync::Data).await.result.unwrap();
            disk.sync_directory("").await.unwrap();
            log.append(vec![2; 700], Sync::No).await.result.unwrap();
            platter.lose_power();
            let found = platter.mount().read("log").await.unwrap();
            assert_eq!(found[..700], [1; 700]);
        });
    }
}

#[test]
fn a_file_whose_directory_was_never_synced_may_vanish() {
    let vanished = (0..30).any(|seed| {
        on_faulty_disk(seed, Faults::default(), |platter| async move {
            let mut log = platter.mount().create("log").await.unwrap();
            log.append(vec![1; 700], Sync::Data).await.result.unwrap();
            platter.lose_power();
            platter.mount().read("log").await.is_err()
        })
    });
    assert!(vanished);
}

#[test]
fn a_killed_process_leaves_the_cache_and_writes_no_more() {
    on_disk(|platter| async move {
        let disk = platter.mount();
        let mut log = disk.create("log").await.unwrap();
        log.append(b"kept".to_vec(), Sync::No).await.result.unwrap();
        let lock = disk.lock_directory("").await.unwrap();
        let next = platter.mount();
        assert!(matches!(log.append(b"ghost".to_vec(), Sync::No).await.result, Err(Failure::Write(_))));
        assert!(disk.read("log").await.is_err() && disk.unlink("log").await.is_err());
        assert_eq!(next.read("log").await.unwrap(), b"kept");
        let held = next.lock_directory("").await.expect("the lock died with its life");
        drop(lock);
        assert!(next.lock_directory("").await.is_err(), "a dead life's drop released the living one's lock");
        drop(held);
    });
}

#[test]
fn a_full_disk_refuses_and_serves_again() {
    let faults = Faults { capacity: 1000, ..Faults::default() };
    on_faulty_disk(0, faults, |platter| async move {
        let disk = platter.mount();
        let mut log = disk.create("log").await.unwrap();
        log.append(vec![1; 900], Sync::Data).await.result.unwrap();
        let Err(Failure::Write(error)) = log.append(vec![2; 200], Sync::Data).await.result else {
            panic!("it fits not")
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(disk.read("log").await.unwrap(), vec![1; 900], "no half of it");
        platter.set_faults(Faults::default());
        log.append(vec![3; 200], Sync::Data).await.result.unwrap();
        assert_eq!(disk.length("log").await.unwrap(), 1100);
    });
}

#[test]
fn d3_a_failed_sync_is_reported_once_and_counted() {
    let faults = Faults { sync_fails_one_in: 1, ..Faults::default() };
    on_faulty_disk(0, faults, |platter| async move {
        let mut log = platter.mount().create("log").await.unwrap();
        assert!(matches!(log.append(vec![1; 10], Sync::Data).await.result, Err(Failure::Sync(_))));
        assert_eq!(platter.failed_syncs(), 1);
        assert!(matches!(log.append(vec![1; 10], Sync::Data).await.result, Err(Failure::Poisoned(_))));
        assert_eq!(platter.failed_syncs(), 1, "a poisoned file is not synced again");
    });
}

/// D14, D15: what damages a disk at rest is read, or cannot be read, until it is undone.
#[test]
fn d14_damage_is_read_until_it_is_undone() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..60 {
        kinds.insert(on_faulty_disk(seed, Faults::default(), |platter| async move {
            let disk = platter.mount();
            disk.create_directory("appendonlydir").await.unwrap();
            let content: Vec<u8> = (0..4000_u32).map(|number| (number % 251) as u8).collect();
            let mut log = disk.create("appendonlydir/a.incr.aof").await.unwrap();
            log.append(content.clone(), Sync::Data).await.result.unwrap();
            let damage = platter.damage(&mut Random::of(seed, "damage")).unwrap();
            let kind = format!("{damage:?}").split(' ').next().unwrap().to_owned();
            assert_ne!(disk.read("appendonlydir/a.incr.aof").await.ok(), Some(content.clone()), "{damage:?}");
            platter.undo(damage);
            assert_eq!(disk.read("appendonlydir/a.incr.aof").await.unwrap(), content);
            kind
        }));
    }
    assert_eq!(kinds.len(), 2, "changed bytes and unreadable sectors: {kinds:?}");
}

#[test]
fn a_lying_sync_saves_nothing_and_a_wiped_disk_is_empty() {
    let faults = Faults { sync_lies_one_in: 1, ..Faults::default() };
    on_faulty_disk(0, faults, |platter| async move {
        let disk = platter.mount();
        let mut log = disk.create("log").await.unwrap();
        log.append(vec![1; 5000], Sync::Data).await.result.unwrap();
        assert!(!platter.is_betrayed());
        disk.sync_directory("").await.unwrap();
        platter.lose_power();
        assert!(platter.is_betrayed());
        assert_ne!(platter.mount().read("log").await.unwrap(), vec![1; 5000]);
        platter.wipe();
        assert!(!platter.is_betrayed());
        assert_eq!(platter.mount().list("").await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn d4_failed_transfers_are_told_and_leave_nothing_of_an_append() {
    let faults = Faults { write_fails_one_in: 1, ..Faults::default() };
    on_faulty_disk(0, faults, |platter| async move {
        let disk = platter.mount();
        let mut log = disk.create("log").await.unwrap();
        assert!(matches!(log.append(vec![1; 500], Sync::Data).await.result, Err(Failure::Write(_))));
        assert_eq!(disk.length("log").await.unwrap(), 0);
        platter.set_faults(Faults { read_fails_one_in: 1, ..Faults::default() });
        assert!(disk.read("log").await.is_err() && disk.read_range("log", 0, 1).await.is_err());
        assert_eq!(platter.injected(), 3);
    });
}

/// D3: after a failed sync and a restart without power loss, the bytes can be read, and only writing them again saves them.
#[test]
fn d3_what_is_written_again_is_safe() {
    for (rewritten, seeds) in [(true, 0..40), (false, 0..40)] {
        let kept = seeds.clone().filter(|&seed| {
            let faults = Faults { sync_fails_one_in: 1, ..Faults::default() };
            on_faulty_disk(seed, faults, |platter| async move {
                let disk = platter.mount();
                let mut log = disk.create("log").await.unwrap();
                disk.sync_directory("").await.unwrap();
                log.append(vec![1; 2000], Sync::Data).await.result.unwrap_err();
                platter.set_faults(Faults::default());
                let disk = platter.mount();
                let mut log = disk.append("log").await.unwrap();
                if rewritten {
                    log.rewrite(0, vec![1; 2000]).await.result.unwrap();
                }
                log.append(Vec::new(), Sync::Data).await.result.unwrap();
                platter.lose_power();
                platter.mount().read("log").await.unwrap() == vec![1; 2000]
            })
        });
        let kept = kept.count();
        assert_eq!(kept == 40, rewritten, "{kept} of 40 kept");
    }
}
