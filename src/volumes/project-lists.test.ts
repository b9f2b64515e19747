import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ProjectLists } from "../ports/project-quotas.ts";
import {
  firstProject,
  isListedElsewhere,
  listedProject,
  unlistedProjects,
  withoutPaths,
  withProject,
} from "./project-lists.ts";

const volume = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/data";
const none: ProjectLists = { projects: "", projid: "" };
function firstFree(lists: ProjectLists): number {
  for (const project of unlistedProjects(lists)) return project;
  return 0;
}

test("a project is written in the Go kubelet's form, and found again by its path", () => {
  const lists = withProject(none, { project: firstProject, path: volume });
  assert.deepEqual(lists, { projects: `1048577:${volume}\n`, projid: "volume1048577:1048577\n" });
  assert.equal(listedProject(lists, volume), 1_048_577);
  assert.equal(listedProject(lists, `${volume}2`), undefined);
  assert.deepEqual(
    withoutPaths(lists, (path) => path === volume),
    none,
  );
});

test("a project that either list has is never taken, however it is written", () => {
  const taken: readonly [projects: string, projid: string][] = [
    ["1048577:/srv", ""],
    [" 1048577 :/srv", ""],
    ["", "backup:1048577"],
    ["", "backup: 1048577 # nightly"],
    ["", "volume1048577:7"],
  ];
  for (const [projects, projid] of taken) assert.equal(firstFree({ projects, projid }), 1_048_578, projects + projid);
  assert.equal(firstFree({ projects: "#1048577:/srv\n42:/srv", projid: "#old:1048577\nbackup:42\n" }), 1_048_577);
});

test("lines of others stay byte for byte, and a missing line break is added only before a new line", () => {
  const others = { projects: "# mine\n42:/srv\n\nnonsense\n7:", projid: "\xe4\xff:42\nbad:line:9" };
  const added = withProject(others, { project: firstProject, path: volume });
  assert.deepEqual(added, {
    projects: `${others.projects}\n1048577:${volume}\n`,
    projid: `${others.projid}\nvolume1048577:1048577\n`,
  });
  assert.deepEqual(
    withoutPaths(added, (path) => path === volume),
    {
      projects: `${others.projects}\n`,
      projid: `${others.projid}\n`,
    },
  );
});

test("a project that another path has keeps its name, and one below the kubelets' range is no kubelet's", () => {
  const shared = { projects: `1048577:${volume}\n1048577:/srv\n`, projid: "volume1048577:1048577\n" };
  assert.deepEqual(
    withoutPaths(shared, (path) => path === volume),
    {
      projects: "1048577:/srv\n",
      projid: shared.projid,
    },
  );
  const line = { project: firstProject, path: volume };
  assert.equal(isListedElsewhere(shared, line), true);
  assert.equal(isListedElsewhere({ ...shared, projects: ` 1048577 :/srv\n` }, line), true);
  assert.equal(isListedElsewhere({ ...shared, projects: `1048577:${volume}\n1048578:/srv\n` }, line), false);
  const low = { projects: `42:${volume}\n`, projid: "data:42\n" };
  assert.equal(listedProject(low, volume), undefined);
  assert.equal(
    withoutPaths(low, () => true),
    undefined,
  );
  assert.equal(
    withoutPaths(none, () => true),
    undefined,
  );
});

test("a path with two projects has none that can be relied on", () => {
  const twice = { projects: `1048577:${volume}\n1048578:${volume}\n`, projid: "" };
  assert.equal(listedProject(twice, volume), undefined);
  assert.equal(listedProject({ ...twice, projects: `1048577:${volume}\n1048577:${volume}\n` }, volume), 1_048_577);
});

test("whatever the lists have, a new project is nobody's, and its removal restores them", () => {
  const line = fc.oneof(
    fc.string({ maxLength: 20 }).map((text) => text.replaceAll("\n", "")),
    fc
      .tuple(fc.integer({ min: 0, max: 5 }), fc.constantFrom(":", " :", ":/a"))
      .map(([id, rest]) => `${1_048_577 + id}${rest}`),
    fc
      .tuple(fc.constantFrom("a:", "volume", "a: "), fc.integer({ min: 0, max: 5 }))
      .map(([name, id]) => `${name}${1_048_577 + id}`),
  );
  const text = fc.array(line, { maxLength: 12 }).map((lines) => lines.map((each) => `${each}\n`).join(""));
  fc.assert(
    fc.property(text, text, (projects, projid) => {
      const lists = { projects, projid };
      const project = firstFree(lists);
      assert.equal(new RegExp(`^[ \\t]*${project}[ \\t]*:`, "mu").test(projects), false);
      assert.equal(new RegExp(`^[^#\\n][^:\\n]*:[ \\t]*${project}(?!\\d)`, "mu").test(projid), false);
      const added = withProject(lists, { project, path: volume });
      assert.equal(listedProject(added, volume), project);
      assert.deepEqual(
        withoutPaths(added, (path) => path === volume),
        lists,
      );
    }),
  );
});
