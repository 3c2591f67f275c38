//! What commands, channels and the API do with repositories, without arguments and printing.
//!
//! Each surface reads its own input and shows the result in its own way; what happens in between is
//! here, so that `codespar dev` at a terminal and `@codespar fix …` in a chat are the same work.

mod ask;
mod dev;
mod locate;
mod names;
mod plan;
mod pulls;
mod simulation;

pub use self::{
    ask::{AskOnce, ask_once},
    dev::{DevRequest, DevResumption},
    locate::locate_files,
    names::has_branch,
    plan::{FeaturePlan, PlanRequest, PlanStep, plan_feature},
    pulls::{Pulls, ReviewRequest},
    simulation::check_simulation,
};
