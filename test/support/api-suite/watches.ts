import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import { merge, type Steps } from "./scene.ts";

const pods = "/api/v1/namespaces/default/pods";

/** Each thing that happens to a pod on node1, after the other. */
async function life({ ask }: Steps, name: string): Promise<void> {
  await ask("admin", `POST ${pods}`, podNamed(name, {}, { labels: { life: name } }));
  const binding = { apiVersion: "v1", kind: "Binding", metadata: { name }, target: { kind: "Node", name: "node1" } };
  await ask("admin", `POST ${pods}/${name}/binding`, binding);
  await ask("admin", `PATCH ${pods}/${name}`, { metadata: { labels: { life: name, more: "1" } } }, { type: merge });
  await ask("admin", `DELETE ${pods}/${name}`);
  await ask("node1", `DELETE ${pods}/${name}`, { gracePeriodSeconds: 0 });
}

export async function playWatches(steps: Steps): Promise<void> {
  const { ask, watch, step } = steps;
  const mine = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dnode1";
  const revision = async (): Promise<string> =>
    textAt((await ask("admin", `GET ${pods}`)).body, "metadata.resourceVersion");
  const first = await revision();
  await watch("a node watches its pods", "node1", `${mine}&resourceVersion=${first}`, 4, async () =>
    life(steps, "one"),
  );
  await watch("a watch catches up", "node1", `${mine}&resourceVersion=${first}`, 4);
  const label = `${pods}?watch=1&labelSelector=more`;
  await watch("a pod comes to be selected", "admin", `${label}&resourceVersion=${first}`, 3);
  await watch("a watch from a revision that is gone", "node1", `${mine}&resourceVersion=1`, 1);
  await watch("a watch from a revision to come", "node1", `${mine}&resourceVersion=99999999`, 1);
  await watch("a watch from a bad revision", "node1", `${mine}&resourceVersion=x`, 1);
  await watch("a watch of all pods", "node1", "/api/v1/pods?watch=1", 1);
  await watch("a watch of another's pods", "node1", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dnode2", 1);
  await ask("admin", `POST ${pods}`, podNamed("here", { nodeName: "node1" }, { labels: { here: "1" } }));
  const here = `${pods}?watch=1&labelSelector=here`;
  await watch("a watch of what is there", "admin", `${here}&resourceVersion=0`, 1);
  await watch("a watch of no revision", "admin", here, 1);
  const list = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  await watch("a watch list", "admin", `${here}${list}`, 2);
  await watch("a watch list of a revision", "admin", `${here}${list}&resourceVersion=${await revision()}`, 2);
  await watch("a watch list without bookmarks", "admin", `${here}${list.replace("&allowWatchBookmarks=true", "")}`, 1);
  await watch("a watch list of no match", "admin", `${here}&sendInitialEvents=true`, 1);
  await step(
    "a list with initial events",
    "admin",
    `GET ${pods}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
  );
  await watch("a watch of a match", "admin", `${here}&resourceVersion=1&resourceVersionMatch=Exact`, 1);
  const one = `${pods}?watch=1&fieldSelector=metadata.name%3Dtwo`;
  await watch("a watch of one pod", "admin", `${one}&resourceVersion=${await revision()}`, 5, async () =>
    life(steps, "two"),
  );
  const nodes = `/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dnode1&resourceVersion=0&allowWatchBookmarks=true`;
  await watch("a node watches itself", "node1", nodes, 1);
  await watch("a node watches another", "node1", nodes.replace("node1", "node2"), 1);
  await ask("admin", `DELETE ${pods}/here?gracePeriodSeconds=0`);
  await pages(steps);
}

async function pages({ ask, step }: Steps): Promise<void> {
  const path = "/api/v1/namespaces/kube-public/secrets";
  for (const name of ["a", "b", "c"]) {
    await ask("admin", `POST ${path}`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `page-${name}`, labels: { page: "1" } },
    });
  }
  const view = ({ metadata, items }: Fields): Fields => ({
    metadata: metadata ?? null,
    items: (items as readonly Fields[]).map((each) => textAt(each, "metadata.name")),
  });
  const first = await step("the first page", "admin", `GET ${path}?limit=2`, undefined, { view });
  const token = textAt(first.body, "metadata.continue");
  await ask("admin", `DELETE ${path}/page-c`);
  const next = `GET ${path}?limit=2&continue=${encodeURIComponent(token)}`;
  await step("the next page", "admin", next, undefined, { view });
  await step("a page with a selector", "admin", `GET ${path}?limit=1&labelSelector=page`, undefined, { view });
  await step("a page of a revision", "admin", `${next}&resourceVersion=5`);
  await step("a collection is deleted", "admin", `DELETE ${path}?labelSelector=page`, undefined, {
    view: (body) => ({
      kind: body["kind"] ?? null,
      count: ((body["items"] ?? []) as readonly Fields[]).length,
      metadata: fieldsAt(body, "metadata"),
    }),
  });
}
