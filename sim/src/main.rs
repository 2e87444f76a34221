//! The seed runner's entry. Outside the simulator's build it only says how to start it.

#[cfg(madsim)]
fn main() -> anyhow::Result<std::process::ExitCode> {
    use simurgh_sim::arguments::{self, Task};
    use simurgh_sim::scenario::Scenario;
    use simurgh_sim::{campaign, runner, score, shrink, twice};

    let arguments = arguments::parse(std::env::args().skip(1))?;
    let planted = Scenario::with_mistakes().filter(|scenario| !arguments.except.contains(&scenario.to_string()));
    let (scenario, jobs, without) = (arguments.scenario, arguments.jobs, arguments.without);
    let plan = campaign::Plan { scenario, jobs, without, directory: None };
    let ending = match arguments.task {
        Task::Run(seeds) => campaign::run(seeds, &plan)?,
        Task::Replay(seed) => runner::one(seed, plan.scenario, &plan.without, arguments.trace)?,
        Task::Shrink(seed) => shrink::shrink(seed, plan)?,
        Task::Regressions => campaign::run(campaign::regressions(), &plan)?,
        Task::Mutants(seeds) => campaign::mutants(&seeds, planted, &plan)?,
        Task::Canaries(seeds) => campaign::mutants(&seeds, planted.filter(|scenario| !scenario.is_node()), &plan)?,
        Task::CheckReplay(seeds) => twice::check(&seeds, &plan)?,
        Task::Score(seeds) => score::write(seeds, &plan)?,
    };
    Ok(std::process::ExitCode::from(ending.code()))
}

#[cfg(not(madsim))]
fn main() {
    eprintln!("run the simulator with `{}`", simurgh_sim::arguments::USAGE);
}
