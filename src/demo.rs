//! The built-in agent: a real ACP agent over stdio, scripted, without account or network.
