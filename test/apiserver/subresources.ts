import type { Access } from "./access.ts";
import { type ApiError, badRequest, forbidden, methodNotAllowed, notFound } from "./api-error.ts";
import { nodeNameOf } from "./node-authorizer.ts";
import { type ApiObject, type Fields, isFields, itemsAt, listAt, textAt } from "./objects.ts";
import { bindPod, evictPod } from "./pod-requests.ts";
import { referencesOf } from "./references.ts";
import type { Registry, Target } from "./registry.ts";
import type { SubresourceHandler, SubresourceRequest } from "./rest.ts";

async function posted({ exchange }: SubresourceRequest): Promise<Fields> {
  if (exchange.method !== "POST") throw methodNotAllowed();
  const body = await exchange.body();
  if (!isFields(body)) throw badRequest("the body of the request is not an object");
  return body;
}

/** Subresources that are actions rather than parts of an object. */
export function subresourceHandlers(registry: Registry, access: Access): Readonly<Record<string, SubresourceHandler>> {
  return {
    "pods/binding": async (request) => {
      const binding = await posted(request);
      request.exchange.send(201, bindPod(registry, request.target, textAt(binding, "target.name")));
    },
    "pods/eviction": async (request) => {
      const eviction = await posted(request);
      const node = nodeNameOf(request.caller.user);
      const pod = registry.find(request.target);
      if (node !== undefined && pod !== undefined && textAt(pod, "spec.nodeName") !== node) {
        const why = `node ${node} can only evict pods with spec.nodeName set to itself`;
        throw forbidden({ group: "", resource: "pods", name: request.target.name }, why);
      }
      request.exchange.send(201, evictPod(registry, request.target, eviction, request.caller));
    },
    "serviceaccounts/token": async (request) => {
      const asked = await posted(request);
      const node = nodeNameOf(request.caller.user);
      if (node !== undefined) {
        const { namespace, name } = request.target;
        const question = { user: request.caller.user, verb: audienceVerb, group: "", namespace, name };
        const mayAsk = (resource: string): boolean =>
          access.authorize({ ...question, resource, subresource: "", fieldSelector: "" }) === undefined;
        requireOwnPod(registry, node, request.target, asked, mayAsk);
      }
      request.exchange.send(201, access.issuer.issue(request.target.namespace, request.target.name, asked));
    },
  };
}

/** A node may only request tokens for its own pods (NodeRestriction). */
function requireOwnPod(
  registry: Registry,
  node: string,
  { namespace, name }: Target,
  request: Fields,
  mayAsk: (audience: string) => boolean,
): void {
  const refuse = (why: string): ApiError => forbidden({ group: "", resource: "serviceaccounts", name }, why);
  const reference = (field: string): string => textAt(request, `spec.boundObjectRef.${field}`);
  if (reference("kind") !== "Pod" || reference("name") === "") throw refuse("node requested token not bound to a pod");
  if (reference("uid") === "") throw refuse("node requested token with a pod binding without a uid");
  const pod = registry.store.get("pods", `${namespace}/${reference("name")}`);
  if (pod === undefined) throw notFound({ group: "", resource: "pod", name: reference("name") });
  if (reference("uid") !== pod.metadata.uid) {
    throw refuse(
      `the UID in the bound object reference (${reference("uid")}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  if (textAt(pod, "spec.nodeName") !== node) {
    throw refuse("node requested token bound to a pod scheduled on a different node");
  }
  // The default audience is the server's own.
  const [audience = "", ...others] = listAt(request, "spec.audiences").map(String);
  if (others.length > 0) throw refuse("node may only request 0 or 1 audiences");
  if (audiencesOf(registry, pod).has(audience) || mayAsk(audience)) return;
  throw refuse(
    `audience ${JSON.stringify(audience)} not found in pod spec volume, system:node:${node} is not authorized to request tokens for this audience`,
  );
}

/** The permission that nodes need for audiences outside of pods, such as credential provider plugins'. */
const audienceVerb = "request-serviceaccounts-token-audience";

/** Audiences of the tokens in a pod's volumes, directly or through CSI drivers. */
function audiencesOf(registry: Registry, pod: ApiObject): ReadonlySet<string> {
  const volumes = itemsAt(pod, "spec.volumes");
  const projected = volumes
    .flatMap((volume) => itemsAt(volume, "projected.sources"))
    .filter((source) => source["serviceAccountToken"] !== undefined)
    .map((source) => textAt(source, "serviceAccountToken.audience"));
  const inline = volumes.map((volume) => textAt(volume, "csi.driver"));
  const drivers = [...inline, ...claimedDrivers(registry, pod)].map((name) =>
    registry.store.get("csidrivers.storage.k8s.io", name),
  );
  const requests = drivers.flatMap((driver) => itemsAt(driver, "spec.tokenRequests"));
  const requested = requests.map((request) => textAt(request, "audience"));
  return new Set([...projected, ...requested]);
}

/** Drivers of the volumes that a pod's claims are bound to. */
function claimedDrivers({ store }: Registry, pod: ApiObject): string[] {
  const claims = [...(referencesOf(pod).get("persistentvolumeclaims") ?? [])];
  return claims.map((name) => {
    const claim = store.get("persistentvolumeclaims", `${pod.metadata.namespace ?? ""}/${name}`);
    const volume = store.get("persistentvolumes", textAt(claim, "spec.volumeName"));
    return textAt(volume, "spec.csi.driver");
  });
}
