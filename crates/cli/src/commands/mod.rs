//! One file per verb. A verb over many kinds is one function; the kinds come from the table.

mod artifact;
mod bootstrap;
mod build;
pub(crate) mod create;
mod debug;
mod delete;
mod events;
mod export;
mod get;
mod install;
mod logs;
mod migrate;
mod per_kind;
pub(crate) mod plugin;
mod reconcile;
mod shell;
mod stats;
mod status;
mod suspend;
mod trace;
mod tree;
mod trigger;
mod uninstall;

pub(crate) use debug::variables;

use crate::node::Node;

/// The whole command tree, in the order help shows it.
pub(crate) fn tree() -> Vec<Node> {
    vec![
        bootstrap::node(),
        build::build_node(),
        status::check_node(),
        shell::completion_node(),
        create::node(),
        debug::node(),
        delete::node(),
        build::diff_node(),
        shell::envsubst_node(),
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
        status::version_node(),
    ]
}
