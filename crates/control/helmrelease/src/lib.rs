//! The HelmRelease controller: releases that never get stuck.
