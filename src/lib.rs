//! parlor: a terminal client for any agent that speaks the Agent Client Protocol.
pub mod acp;
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod model;
pub mod runtime;
pub mod services;
pub mod ui;
