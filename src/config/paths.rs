//! Paths of parlor's files and folders: from the command line, otherwise the environment, otherwise the
//! platform's defaults. Nothing is created here.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use directories::ProjectDirs;

use super::Origin;

/// Overrides the configuration file.
pub const CONFIG_VARIABLE: &str = "PARLOR_CONFIG";
/// Overrides the data folder.
pub const DATA_VARIABLE: &str = "PARLOR_DATA_DIR";

/// Absolute paths of files and folders, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub config_file: PathBuf,
    /// Saved sessions, prompt history and settings per folder.
    pub data_dir: PathBuf,
    /// Log files, including the agents' stderr.
    pub log_dir: PathBuf,
    /// The user's themes: `themes` next to the configuration file.
    pub theme_dir: PathBuf,
    /// The user's prompt templates: `prompts` next to the configuration file.
    pub prompt_dir: PathBuf,
    pub config_origin: Origin,
    pub data_origin: Origin,
}

impl Paths {
    /// Determines the paths. Arguments take precedence over `PARLOR_CONFIG` and `PARLOR_DATA_DIR` (empty
    /// variables are ignored), and these over the platform's folders.
    ///
    /// Fails if the platform has no home folder and a path is not given.
    pub fn find(config: Option<PathBuf>, data_dir: Option<PathBuf>) -> anyhow::Result<Self> {
        Self::choose(config, data_dir, |name| super::environment(name).map(PathBuf::from))
    }

    fn choose(
        config: Option<PathBuf>,
        data_dir: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let dirs = ProjectDirs::from("", "", "parlor");
        let from_variable = |name: &'static str| {
            let path = variable(name).filter(|path| !path.as_os_str().is_empty())?;
            Some((path, Origin::Environment(name)))
        };
        let given = |path: Option<PathBuf>| path.map(|path| (path, Origin::CommandLine));

        let (config_file, config_origin) = given(config)
            .or_else(|| from_variable(CONFIG_VARIABLE))
            .or_else(|| Some((dirs.as_ref()?.config_dir().join("config.toml"), Origin::Default)))
            .context("cannot find the home folder; set HOME, or pass --config FILE")?;
        let (data_dir, data_origin) = given(data_dir)
            .or_else(|| from_variable(DATA_VARIABLE))
            .or_else(|| Some((dirs.as_ref()?.data_dir().to_owned(), Origin::Default)))
            .context("cannot find the home folder; set HOME, or pass --data-dir DIR")?;

        let config_file = absolute(&config_file)?;
        let data_dir = absolute(&data_dir)?;
        let state_dir = match data_origin {
            Origin::Default => dirs.as_ref().and_then(ProjectDirs::state_dir).map(Path::to_owned),
            _ => None,
        };
        let log_dir = state_dir.unwrap_or_else(|| data_dir.clone()).join("logs");
        let theme_dir = config_file.parent().unwrap_or(Path::new("/")).join("themes");
        let prompt_dir = config_file.parent().unwrap_or(Path::new("/")).join("prompts");
        Ok(Self { config_file, data_dir, log_dir, theme_dir, prompt_dir, config_origin, data_origin })
    }

    /// The files and folders of parlor, which an agent must not change without the user's consent. If the
    /// user chose the configuration file's path, its folder is not included.
    pub fn own(&self) -> Vec<PathBuf> {
        let is_default = self.config_origin == Origin::Default;
        let config = if is_default { self.config_folder() } else { self.config_file.clone() };
        let folders = [&self.theme_dir, &self.prompt_dir, &self.data_dir, &self.log_dir];
        std::iter::once(config).chain(folders.into_iter().cloned()).collect()
    }

    pub fn config_folder(&self) -> PathBuf {
        self.config_file.parent().unwrap_or(Path::new("/")).to_owned()
    }
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path)
        .with_context(|| format!("cannot resolve {}; pass an absolute path", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_config_path_protects_only_the_file() {
        let find = |config: Option<&str>| {
            let home = |name: &str| (name == DATA_VARIABLE).then(|| PathBuf::from("/data"));
            Paths::choose(config.map(PathBuf::from), None, home).unwrap().own()
        };
        let named = find(Some("/home/u/code/parlor.toml"));
        assert!(named.contains(&"/home/u/code/parlor.toml".into()) && named.contains(&"/data".into()));
        assert!(!named.contains(&"/home/u/code".into()));
        assert!(find(None).iter().any(|own| own.ends_with("parlor")), "the default folder is included");
    }

    #[test]
    fn command_line_takes_precedence_over_environment() {
        let variable = |name: &str| Some(PathBuf::from(format!("/from/{name}")));
        let paths = Paths::choose(Some("/given/config.toml".into()), None, variable).unwrap();
        assert_eq!(paths.config_file, Path::new("/given/config.toml"));
        assert_eq!(paths.config_origin, Origin::CommandLine);
        assert_eq!(paths.theme_dir, Path::new("/given/themes"));
        assert_eq!(paths.data_dir, Path::new("/from/PARLOR_DATA_DIR"));
        assert_eq!(paths.data_origin, Origin::Environment(DATA_VARIABLE));
        assert_eq!(
            paths.log_dir,
            Path::new("/from/PARLOR_DATA_DIR/logs"),
            "logs are in the custom data folder"
        );
    }

    #[test]
    fn empty_variables_are_ignored_and_paths_are_absolute() {
        let variable = |_: &str| Some(PathBuf::new());
        let paths = Paths::choose(Some("here.toml".into()), Some("data".into()), variable).unwrap();
        assert!(paths.config_file.is_absolute() && paths.config_file.ends_with("here.toml"));
        assert!(paths.data_dir.is_absolute() && paths.data_dir.ends_with("data"));
        assert_eq!(paths.data_origin, Origin::CommandLine);
    }
}
