import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import { playCertificates } from "./certificates.ts";
import { apply, merge, type Steps, strategic } from "./scene.ts";

const core = "/api/v1/namespaces/default";

async function readsWhatPodsNeed({ ask, step, watch }: Steps): Promise<void> {
  for (const name of ["wanted", "other"]) {
    const metadata = { name };
    await ask("admin", `POST ${core}/configmaps`, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" } });
    await ask("admin", `POST ${core}/secrets`, { apiVersion: "v1", kind: "Secret", metadata, stringData: { a: "1" } });
  }
  const volumes = [
    { name: "c", configMap: { name: "wanted" } },
    { name: "s", secret: { secretName: "wanted" } },
    {
      name: "t",
      projected: {
        sources: [
          { serviceAccountToken: { audience: "vault", path: "a" } },
          { serviceAccountToken: { audience: "other", path: "b" } },
        ],
      },
    },
  ];
  for (const resource of ["configmaps", "secrets"]) {
    await step(`a node reads ${resource} that nobody refers to`, "node1", `GET ${core}/${resource}/wanted`);
  }
  await ask("admin", `POST ${core}/pods`, podNamed("user", { nodeName: "node1", volumes }));
  const there = { until: ({ code }: { readonly code: number }) => code === 200 };
  for (const resource of ["configmaps", "secrets"]) {
    const path = `${core}/${resource}`;
    await step(`a node reads ${resource} of its pod`, "node1", `GET ${path}/wanted`, undefined, there);
    await step(`a node reads other ${resource}`, "node1", `GET ${path}/other`);
    await step(`a node reads another node's ${resource}`, "node2", `GET ${path}/wanted`);
    await step(`a node lists ${resource}`, "node1", `GET ${path}`);
    await step(
      `a node lists one of ${resource}`,
      "node1",
      `GET ${path}?fieldSelector=metadata.name%3Dwanted`,
      undefined,
      {
        view: ({ kind, items }) => ({
          kind: kind ?? null,
          names: (items as readonly Fields[]).map((each) => textAt(each, "metadata.name")),
        }),
      },
    );
    await watch(
      `a node watches ${resource} of its pod`,
      "node1",
      `${path}?watch=1&fieldSelector=metadata.name%3Dwanted&resourceVersion=0`,
      1,
    );
    await watch(`a node watches ${resource}`, "node1", `${path}?watch=1`, 1);
    await step(`a node changes ${resource}`, "node1", `PATCH ${path}/wanted`, { data: null }, { type: merge });
  }
  const claims = `${core}/persistentvolumeclaims`;
  await step("a node reads a claim that nobody refers to", "node1", `GET ${claims}/none`);
  await step("a node reads a volume that nobody refers to", "node1", "GET /api/v1/persistentvolumes/none");
  await step("a node reads an account of its pod", "node1", `GET ${core}/serviceaccounts/default`, undefined, {
    view: (body) => textAt(body, "metadata.name"),
  });
  const count = {
    view: ({ kind, apiVersion }: Fields): Fields => ({ kind: kind ?? null, apiVersion: apiVersion ?? null }),
  };
  await step("a node lists services", "node1", "GET /api/v1/services", undefined, count);
  await step("a node lists runtime classes", "node1", "GET /apis/node.k8s.io/v1/runtimeclasses", undefined, count);
  await step("a node lists CSI drivers", "node1", "GET /apis/storage.k8s.io/v1/csidrivers", undefined, count);
  await step("a node lists CSI nodes", "node1", "GET /apis/storage.k8s.io/v1/csinodes");
  await step("a node reads its CSI node", "node1", "GET /apis/storage.k8s.io/v1/csinodes/node1");
  await step("a node reads another's CSI node", "node1", "GET /apis/storage.k8s.io/v1/csinodes/node2");
  const slices = "DELETE /apis/resource.k8s.io/v1/resourceslices";
  await step("a node deletes its resource slices", "node1", `${slices}?fieldSelector=spec.nodeName%3Dnode1`, {}, count);
  await step("a node deletes all resource slices", "node1", slices);
  await step("a node lists endpoints", "node1", "GET /api/v1/endpoints");
  await step("a node lists namespaces", "node1", "GET /api/v1/namespaces");
}

async function tells({ step }: Steps): Promise<void> {
  const event = (name: string, more: Fields = {}): Fields => ({
    ...{ apiVersion: "v1", kind: "Event", metadata: { name, namespace: "default" } },
    involvedObject: { kind: "Pod", namespace: "default", name: "user", apiVersion: "v1" },
    ...{ reason: "Started", message: "m", type: "Normal", count: 1, source: { component: "kubelet", host: "node1" } },
    ...{ firstTimestamp: "2026-01-02T03:04:05Z", lastTimestamp: "2026-01-02T03:04:05Z" },
    ...{ reportingComponent: "kubelet", reportingInstance: "node1", ...more },
  });
  const path = `${core}/events`;
  await step("a node tells an event", "node1", `POST ${path}`, event("user.1"));
  await step("a node tells an event again", "node1", `POST ${path}`, event("user.1"));
  const twice = { count: 2, lastTimestamp: "2026-01-02T03:05:05Z" };
  await step("an event is counted", "node1", `PATCH ${path}/user.1`, twice, { type: strategic });
  await step("no event is counted", "node1", `PATCH ${path}/user.2`, twice, { type: strategic });
  await step(
    "an event of another namespace",
    "node1",
    `POST ${path}`,
    event("user.3", { involvedObject: { kind: "Pod", namespace: "other", name: "user" } }),
  );
  await step("a node reads events", "node1", `GET ${path}`);
  await step("an event by its new name", "admin", "GET /apis/events.k8s.io/v1/namespaces/default/events/user.1");
  await step(
    "events of an object",
    "admin",
    `GET ${path}?fieldSelector=involvedObject.name%3Duser,reason%3DStarted`,
    undefined,
    {
      view: ({ items }) => (items as readonly Fields[]).length,
    },
  );
  const fresh = {
    ...{ apiVersion: "events.k8s.io/v1", kind: "Event", metadata: { name: "user.4", namespace: "default" } },
    regarding: { kind: "Pod", namespace: "default", name: "user" },
    ...{ reason: "Started", note: "n", type: "Normal", action: "Starting", eventTime: "2026-01-02T03:04:05.000006Z" },
    ...{ reportingController: "kubelet", reportingInstance: "node1" },
  };
  await step("an event of the new kind", "node1", "POST /apis/events.k8s.io/v1/namespaces/default/events", fresh);
  await step("an event of the new kind by its old name", "admin", `GET ${path}/user.4`);
}

async function tokens({ ask, step }: Steps): Promise<void> {
  const path = `${core}/serviceaccounts/default/token`;
  const { body: pod } = await ask("admin", `GET ${core}/pods/user`);
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "user", uid: textAt(pod, "metadata.uid") };
  const request = (spec: Fields): Fields => ({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
  const asked = { audiences: ["vault"], expirationSeconds: 3607, boundObjectRef };
  const { body: made } = await step("a token for a pod", "node1", `POST ${path}`, request(asked));
  const { body: own } = await ask(
    "node1",
    `POST ${path}`,
    request({ boundObjectRef, expirationSeconds: 3607, audiences: [] }),
  );
  await step(
    "a token for an audience that the pod does not have",
    "node1",
    `POST ${path}`,
    request({ ...asked, audiences: ["x"] }),
  );
  await step(
    "a token for two audiences",
    "node1",
    `POST ${path}`,
    request({ ...asked, audiences: ["vault", "other"] }),
  );
  await step("a token for another's pod", "node2", `POST ${path}`, request(asked));
  await step("a token for no pod", "node1", `POST ${path}`, request({ audiences: ["vault"] }));
  await step(
    "a token for a pod without a UID",
    "node1",
    `POST ${path}`,
    request({ ...asked, boundObjectRef: { ...boundObjectRef, uid: "" } }),
  );
  await step(
    "a token for a pod of another UID",
    "node1",
    `POST ${path}`,
    request({ ...asked, boundObjectRef: { ...boundObjectRef, uid: "other" } }),
  );
  await step(
    "a token for a pod that is not there",
    "node1",
    `POST ${path}`,
    request({ ...asked, boundObjectRef: { ...boundObjectRef, name: "none" } }),
  );
  await step("a token for long", "node1", `POST ${path}`, request({ ...asked, expirationSeconds: 60 }));
  await step("a token of no account", "admin", `POST ${core}/serviceaccounts/none/token`, request(asked));
  await step("a token with the account alone", "admin", `POST ${path}`, request({ expirationSeconds: 700 }), {
    view: (body) => ({ ...body, spec: { ...fieldsAt(body, "spec"), audiences: null } }),
  });
  const claims = JSON.parse(
    Buffer.from(textAt(made, "status.token").split(".")[1] ?? "", "base64url").toString(),
  ) as Fields;
  const { iss: _, iat: _iat, nbf: _nbf, exp: _exp, ...said } = claims;
  await step(
    "a review of a token",
    "node1",
    "POST /apis/authentication.k8s.io/v1/tokenreviews",
    review({ token: textAt(made, "status.token"), audiences: ["vault", "x"] }),
    {
      view: ({ status }) => ({
        status: withoutIds(status as Fields),
        said: Object.keys(said).toSorted(),
        bound: Object.keys(said["kubernetes.io"] as Fields).toSorted(),
      }),
    },
  );
  await step(
    "a review of a token for others",
    "node1",
    "POST /apis/authentication.k8s.io/v1/tokenreviews",
    review({ token: textAt(made, "status.token") }),
    { view: ({ status }) => Object.keys(status as Fields) },
  );
  await step(
    "a review of a bad token",
    "node1",
    "POST /apis/authentication.k8s.io/v1/tokenreviews",
    review({ token: "bad" }),
    {
      view: ({ status }) => ({
        authenticated: (status as Fields)["authenticated"] ?? false,
        user: (status as Fields)["user"] ?? null,
      }),
    },
  );
  const token = textAt(own, "status.token");
  await step(
    "a pod asks who it is",
    "nobody",
    "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
    { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
    { token, view: ({ status }) => withoutIds(status as Fields) },
  );
  await step("a pod lists pods", "nobody", `GET ${core}/pods`, undefined, { token });
  await step("a token for others is no way in", "nobody", `GET ${core}/pods`, undefined, {
    token: textAt(made, "status.token"),
  });
  await step("a bad token", "nobody", `GET ${core}/pods`, undefined, { token: "bad" });
  await step("nobody", "nobody", `GET ${core}/pods`);
}

function review(spec: Fields): Fields {
  return { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec };
}

function withoutIds(status: Fields): Fields {
  return JSON.parse(JSON.stringify(status).replaceAll(/"JTI=[^"]*"/g, '"<id>"')) as Fields;
}

async function reviews({ step }: Steps): Promise<void> {
  const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const ask = (user: string, attributes: Fields, groups: readonly string[] = []): Fields => ({
    ...{ apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" },
    spec: { user, groups, resourceAttributes: attributes },
  });
  const logs = { verb: "get", resource: "nodes", subresource: "log", name: "node1", version: "v1" };
  const view = ({ status }: Fields): Fields => ({ allowed: fieldsAt({ status }, "status")["allowed"] ?? null });
  await step("may an administrator read logs", "node1", `POST ${path}`, ask("admin", logs, ["system:masters"]), {
    view,
  });
  await step("may somebody read logs", "node1", `POST ${path}`, ask("somebody", logs, ["system:authenticated"]), {
    view,
  });
  await step("a review of nobody", "node1", `POST ${path}`, ask("", logs));
  await step("a pod's question about others", "nobody", `POST ${path}`, ask("admin", logs));
  const itself = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  await step(
    "may a node read its node",
    "node1",
    itself,
    {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: { verb: "get", resource: "nodes", name: "node1" } },
    },
    { view },
  );
}

async function others({ ask, step }: Steps): Promise<void> {
  await step("no such path", "admin", "GET /nothing");
  await step("no such resource", "admin", "GET /api/v1/colors");
  await step("no such group", "admin", "GET /apis/example.com/v1/colors");
  await step("no such version", "admin", "GET /apis/coordination.k8s.io/v9/leases");
  await step("no such subresource", "admin", `GET ${core}/pods/user/color`);
  await step("no such verb", "admin", `POST ${core}/pods/user`, podNamed("user"));
  await step("a collection is put", "admin", `PUT ${core}/pods`, podNamed("user"));
  await step("a status is posted", "admin", `POST ${core}/pods/user/status`, podNamed("user"));
  await step("an unknown format", "admin", `POST ${core}/pods`, podNamed("x"), { type: "text/plain" });
  await step("an object that is none", "admin", `POST ${core}/configmaps`, [1]);
  await step("a patch that is none", "admin", `PATCH ${core}/configmaps/wanted`, [1], { type: merge });
  await step("a patch of what is not there", "admin", `PATCH ${core}/configmaps/none`, {}, { type: merge });
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data: { a: "1" } };
  await step("an apply patch", "admin", `PATCH ${core}/configmaps/applied?fieldManager=me`, map, { type: apply });
  await ask("admin", `POST ${core}/configmaps`, { ...map, metadata: { name: "frozen" }, immutable: true });
  await step(
    "a frozen map is changed",
    "admin",
    `PATCH ${core}/configmaps/frozen`,
    { data: { a: "2" } },
    { type: merge },
  );
  await step("a map is deleted", "admin", `DELETE ${core}/configmaps/frozen`);
  await step("a map is deleted twice", "admin", `DELETE ${core}/configmaps/frozen`);
  await step("a secret of two kinds of data", "admin", `POST ${core}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    data: { a: "YQ==" },
    stringData: { b: "b" },
  });
  await step("a secret that is not encoded", "admin", `POST ${core}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "t" },
    data: { a: "?" },
  });
  await step("a service", "admin", `POST ${core}/services`, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: { ports: [{ port: 80 }] },
  });
  await step("a namespace", "admin", "POST /api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "fresh" },
  });
  await step("nobody asks for health", "nobody", "GET /healthz");
  await step("nobody asks for the version", "nobody", "GET /version", undefined, {
    view: (body) => Object.keys(body).filter((key) => key === "gitVersion"),
  });
  await step("nobody asks for the groups", "nobody", "GET /apis");
}

export async function playAccess(steps: Steps): Promise<void> {
  await readsWhatPodsNeed(steps);
  await tells(steps);
  await tokens(steps);
  await reviews(steps);
  await playCertificates(steps);
  await others(steps);
}
