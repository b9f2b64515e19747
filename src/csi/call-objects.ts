import { isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { secretContent } from "../api/object-content.ts";
import type { Pod } from "../api/pod.ts";
import { secrets } from "../objects/api-objects.ts";
import type { ServiceAccountTokens } from "../objects/service-account-tokens.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { AccountToken, CallObjects, TokenWish } from "./call-inputs.ts";
import type { SecretPlace } from "./source.ts";

/**
 * Reads from the API server. Secrets of PersistentVolumes belong to no pod, so they are read at each call, as upstream
 * does.
 */
export function clusterCallObjects(client: ApiClient, tokens: Pick<ServiceAccountTokens, "obtain">): CallObjects {
  return {
    async secret({ namespace, name }: SecretPlace, signal: AbortSignal) {
      try {
        const secret = await client.get({ lane: "objects", resource: secrets, place: { namespace, name }, signal });
        return secretContent(secret).data;
      } catch (error) {
        if (isApiError(error, "NotFound")) return undefined;
        throw error;
      }
    },
    async token(pod: Pod, { audience, expirationSeconds }: TokenWish, signal: AbortSignal): Promise<AccountToken> {
      const source = { audience, path: "", ...(expirationSeconds !== undefined && { expirationSeconds }) };
      return await tokens.obtain(pod, source, signal);
    },
  };
}

/** For a node without a cluster. */
export function localCallObjects(objects: Pick<ObjectLookup, "secret">): CallObjects {
  return {
    secret: async ({ namespace, name }) => objects.secret(namespace, name)?.data,
    token: async () => {
      throw new Error("tokens of service accounts need an API server (podwright kubelet --kubeconfig)");
    },
  };
}
