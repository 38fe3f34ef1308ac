//! The daemon: many jobs at once, each with its own verdict, and what it tells
//! Prometheus.

mod endurance;
mod guests;
mod house;
mod jobs;
mod killed;
mod left;
mod manifests;
mod scrape;
mod signed;
