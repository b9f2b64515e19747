import type { Access } from "./access.ts";
import { ApiError, badRequest, methodNotAllowed } from "./api-error.ts";
import { nodeNameOf } from "./node-authorizer.ts";
import { type Fields, isFields, textAt } from "./objects.ts";
import { bindPod, evictPod } from "./pod-requests.ts";
import type { Registry } from "./registry.ts";
import type { SubresourceHandler, SubresourceRequest } from "./rest.ts";

async function posted({ exchange }: SubresourceRequest): Promise<Fields> {
  if (exchange.method !== "POST") throw methodNotAllowed();
  const body = await exchange.body();
  if (!isFields(body)) throw badRequest("the body of the request is not an object");
  return body;
}

/** Subresources that are requests rather than parts of an object. */
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
        throw new ApiError(403, "Forbidden", why);
      }
      request.exchange.send(201, evictPod(registry, request.target, eviction, request.caller));
    },
    "serviceaccounts/token": async (request) => {
      const asked = await posted(request);
      const node = nodeNameOf(request.caller.user);
      if (node !== undefined) requireOwnPod(registry, node, request.target.namespace, asked);
      request.exchange.send(201, access.issuer.issue(request.target.namespace, request.target.name, asked));
    },
  };
}

/** A node gets tokens for pods that run on it, and for nothing else (NodeRestriction). */
function requireOwnPod(registry: Registry, node: string, namespace: string, request: Fields): void {
  const refuse = (why: string): ApiError => new ApiError(403, "Forbidden", `serviceaccounts is forbidden: ${why}`);
  const reference = (field: string): string => textAt(request, `spec.boundObjectRef.${field}`);
  if (reference("kind") !== "Pod" || reference("name") === "") throw refuse("node requested token not bound to a pod");
  if (reference("uid") === "") throw refuse("node requested token with a pod binding without a uid");
  const pod = registry.store.get("pods", `${namespace}/${reference("name")}`);
  if (pod !== undefined && textAt(pod, "spec.nodeName") !== node) {
    throw refuse("node requested token bound to a pod scheduled on a different node");
  }
}
