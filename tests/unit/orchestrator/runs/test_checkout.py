"""The commit that Rove runs from, with and without git, in checkouts, worktrees, and what is neither."""

import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.runs import checkout as checkouts
from orchestrator.runs.checkout import checkout, commit_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def repository(root: Path, head: str, **files: str) -> Path:
    git = root / ".git"
    for name, text in {"HEAD": head, **files}.items():
        path = git / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_commit_is_that_of_the_branch_or_of_head_itself(tmp_path: Path) -> None:
    on_branch = repository(tmp_path / "a", "ref: refs/heads/x/y\n", **{"refs/heads/x/y": f"{COMMIT}\n"})
    detached = repository(tmp_path / "b", f"{COMMIT}\n")
    packed = f"# pack-refs with: peeled\n{'f' * 40} refs/heads/x\n{COMMIT} refs/heads/main\n"
    in_pack = repository(tmp_path / "c", "ref: refs/heads/main\n", **{"packed-refs": packed})
    assert [commit_of(root) for root in (on_branch, detached, in_pack)] == [COMMIT] * 3


def test_a_worktree_has_its_own_head_and_the_branches_of_its_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", f"{'f' * 40}\n", **{"refs/heads/tools": f"{COMMIT}\n"})
    own = main / ".git" / "worktrees" / "tools"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/tools\n")
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own}\n")
    assert commit_of(tree) == COMMIT


@pytest.mark.parametrize(
    "head", ["", "no commit", "ref: refs/heads/gone", "ref: ../../../etc/passwd", "ref: /etc/passwd", "é" * 9]
)
def test_what_is_no_checkout_has_no_commit(tmp_path: Path, head: str) -> None:
    assert commit_of(repository(tmp_path, head)) is None
    assert checkout(tmp_path / "nothing") is None


def test_without_git_it_is_not_known_whether_files_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout(repository(tmp_path / "a", COMMIT)) == {"commit": COMMIT, "dirty": None}


@NEEDS_GIT
def test_git_tells_whether_tracked_files_were_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    found = checkouts.checkout.__wrapped__(tmp_path)
    assert found is not None and found["dirty"] is False and found["commit"] == commit_of(tmp_path)
    (tmp_path / "new").write_text("not tracked")
    assert checkouts.checkout.__wrapped__(tmp_path) == found
    (tmp_path / "file").write_text("two")
    changed = checkouts.checkout.__wrapped__(tmp_path)
    assert changed is not None and changed["dirty"] is True
