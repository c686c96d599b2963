//! One file per command. A command for many kinds is one function over the table of kinds.

mod artifact;
mod bootstrap;
mod build;
mod check;
mod completion;
pub(crate) mod create;
mod debug;
mod delete;
mod envsubst;
mod events;
mod export;
mod get;
mod install;
mod logs;
mod migrate;
pub(crate) mod plugin;
mod reconcile;
mod resource_commands;
mod stats;
mod suspend;
mod trace;
mod tree;
mod trigger;
mod uninstall;
mod version;

pub(crate) use debug::variables;

use crate::command::Node;

/// The whole command tree, in the order help shows it.
pub(crate) fn tree() -> Vec<Node> {
    vec![
        bootstrap::node(),
        build::build_node(),
        check::check_node(),
        completion::completion_node(),
        create::node(),
        debug::node(),
        delete::node(),
        build::diff_node(),
        envsubst::envsubst_node(),
        events::node(),
        export::node(),
        get::node(),
        install::node(),
        artifact::list_node(),
        logs::node(),
        migrate::node(),
        plugin::node(),
        artifact::pull_node(),
        artifact::push_node(),
        reconcile::node(),
        suspend::resume_node(),
        stats::node(),
        suspend::suspend_node(),
        artifact::tag_node(),
        trace::node(),
        tree::node(),
        trigger::node(),
        uninstall::node(),
        version::version_node(),
    ]
}
