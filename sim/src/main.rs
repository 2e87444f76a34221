//! The seed runner's entry. Outside the simulator's build it only says how to start it.

#[cfg(madsim)]
fn main() -> anyhow::Result<std::process::ExitCode> {
    use simurgh_sim::arguments::{self, Task};
    use simurgh_sim::runner;

    let arguments = arguments::parse(std::env::args().skip(1))?;
    let scenario = arguments.scenario;
    let ending = match arguments.task {
        Task::Run(seeds) => runner::run(seeds, scenario, arguments.jobs)?,
        Task::Replay(seed) => runner::one(seed, scenario, arguments.trace),
        Task::Regressions => runner::run(runner::regressions(), scenario, arguments.jobs)?,
        Task::Canaries(seeds) => runner::canaries(&seeds, arguments.jobs)?,
        Task::CheckReplay(seeds) => runner::check_replay(seeds, scenario, arguments.jobs)?,
    };
    Ok(std::process::ExitCode::from(ending.code()))
}

#[cfg(not(madsim))]
fn main() {
    eprintln!("run the simulator with `{}`", simurgh_sim::arguments::USAGE);
}
