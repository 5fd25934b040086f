use super::*;
use crate::host::git::tests::git;

/// A folder with a repository `repo` and its worktree `tree`.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let repo = root.join("repo");
    fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q"]);
    git(&repo, &["remote", "add", "origin", "https://host/shop.git"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&repo, &["worktree", "add", "-q", root.join("tree").to_str().unwrap()]);
    (dir, root)
}

#[test]
fn worktrees_belong_to_the_same_repository() {
    let (_dir, root) = repository();
    let (repo, tree) = (root.join("repo"), root.join("tree"));
    fs::create_dir(root.join("other")).unwrap();
    fs::create_dir(repo.join("sub")).unwrap();
    let mut kin = Kin::new(&tree);
    assert_eq!(kin.of(&tree, None), (Nearness::Here, false));
    assert_eq!(kin.of(&repo, None), (Nearness::SameRepository, false));
    assert_eq!(kin.of(&repo.join("sub"), None), (Nearness::SameRepository, false));
    assert_eq!(kin.of(&root.join("other"), None), (Nearness::Elsewhere, false));
    assert_eq!(kin.of(&root.join("gone"), None), (Nearness::Elsewhere, true));
    let mark = mark(&repo).unwrap();
    assert_eq!(mark.remote.as_deref(), Some("https://host/shop.git"));
    assert_eq!(kin.of(&root.join("gone too"), Some(&mark)), (Nearness::SameRepository, true));
}

#[test]
fn moved_folders_are_recognized_by_inode_and_others_by_common_properties() {
    let (_dir, root) = repository();
    let (repo, tree) = (root.join("repo"), root.join("tree"));
    let mark_of_tree = mark(&tree).unwrap();
    fs::create_dir(root.join("new place")).unwrap();
    let moved = root.join("new place/tree");
    fs::rename(&tree, &moved).unwrap();
    let current = root.join("here");
    fs::create_dir(&current).unwrap();
    let found = offers(&tree, Some(&mark_of_tree), &current, &[]);
    let reasons: Vec<_> = found.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(
        reasons,
        [
            (moved, FolderReason::Moved),
            (repo, FolderReason::Worktree),
            (current.clone(), FolderReason::Current)
        ]
    );

    // A clone of the same remote, and a folder that only has the same name.
    let copy = root.join("copy");
    fs::create_dir(&copy).unwrap();
    git(&copy, &["init", "-q"]);
    git(&copy, &["remote", "add", "origin", "https://host/shop.git"]);
    let gone =
        FolderMark { device: 0, inode: 0, made_us: None, common_dir: None, remote: mark_of_tree.remote };
    let found = offers(&root.join("deleted"), Some(&gone), &current, &[]);
    assert!(
        found.contains(&FolderOffer { folder: copy, why: FolderReason::SameRemote, others: 0 }),
        "{found:?}"
    );
    fs::create_dir_all(root.join("new place/deleted")).unwrap();
    let found = offers(&root.join("deleted"), None, &current, &[]);
    let named =
        FolderOffer { folder: root.join("new place/deleted"), why: FolderReason::SameName, others: 0 };
    assert_eq!(found, [named, FolderOffer { folder: current, why: FolderReason::Current, others: 0 }]);
}

#[test]
fn a_folder_with_a_reused_inode_is_not_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let new = root.join("new");
    fs::create_dir(&new).unwrap();
    let is_moved = |mark: &FolderMark| {
        let found = offers(&root.join("gone"), Some(mark), &root, &[]);
        found.iter().any(|offer| offer.folder == new && offer.why == FolderReason::Moved)
    };
    let own = mark(&new).unwrap();
    assert!(is_moved(&own));
    // Without a creation time, from older versions or file systems without it, the inode is sufficient.
    assert!(is_moved(&FolderMark { made_us: None, ..own.clone() }));
    if let Some(made_us) = own.made_us {
        assert!(!is_moved(&FolderMark { made_us: Some(made_us - 1), ..own }));
    }
}
