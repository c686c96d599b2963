//! Fetching from Git servers over HTTP and SSH, on top of the pure protocol in `fl-git`.
