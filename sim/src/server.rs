//! The server under test: a whole node, started by the code that starts it in production, on the simulated disk.

use std::io;
use std::sync::Arc;

use simurgh_kernel::core;
use simurgh_kernel::disk::Disk;
use simurgh_kernel::signal::Signals;
use simurgh_protocol::config::{Given, Key, Origin, Settings};
use simurgh_system::node::{Node, Options as NodeOptions};

use crate::busy;
use crate::options::Options;
use crate::world::World;

/// Runs one life of a node, until it is told to end.
pub async fn run(disk: Arc<dyn Disk>, world: World) -> io::Result<()> {
    let options = &world.options;
    let mut signals = Signals::catch()?;
    let started = Node::start(NodeOptions {
        settings: settings(options),
        config_file: None,
        disk,
        allocator: None,
        set_log_level: None,
    });
    let running = started.await.map_err(|error| io::Error::other(error.to_string()))?;
    world.set_serving(true);
    let node = running.node.clone();
    core::spawn(busy::hold_now_and_then(node.clone(), options.busy, options.seed, world.queued.clone()));
    core::spawn(async move {
        signals.next().await;
        node.shutdown.ask();
    });
    running.until_shutdown().await;
    Ok(())
}

fn settings(options: &Options) -> Settings {
    let mut settings = Settings::default();
    let (threads, shards) = (options.threads.to_string(), options.shards.to_string());
    for (key, value) in [
        (Key::Bind, "0.0.0.0"),
        (Key::ProtectedMode, "no"),
        (Key::AppendOnly, "yes"),
        (Key::EnableDebugCommand, "yes"),
        (Key::AppendFsync, options.mode.word()),
        (Key::Threads, &threads),
        (Key::Shards, &shards),
    ] {
        settings.put(key, Given::Whole(value.as_bytes()), Origin::CommandLine).expect("a value that the table allows");
    }
    settings
}
