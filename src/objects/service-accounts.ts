import * as z from "zod";
import type { ApiClient } from "../api-client/client.ts";
import { decoder, type Resource } from "../api-client/resource.ts";
import { StringMap } from "../api/meta.ts";
import type { Pod } from "../api/pod.ts";
import type { PullAccount } from "../images/credential-provider.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";

const ServiceAccount = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string().optional(),
    uid: z.string(),
    annotations: StringMap.optional(),
  }),
});
type ServiceAccount = z.infer<typeof ServiceAccount>;

const serviceAccounts: Resource<ServiceAccount> = {
  base: "/api/v1",
  plural: "serviceaccounts",
  kind: "ServiceAccount",
  decode: decoder(ServiceAccount, "ServiceAccount"),
};

/** The pod's service account for credential providers; undefined: none. */
export function pullAccount(
  { client, tokens }: { readonly client: ApiClient; readonly tokens: ServiceAccountTokens },
  pod: Pod,
): PullAccount | undefined {
  const { namespace } = pod.metadata;
  const name = pod.spec.serviceAccountName ?? "";
  if (name === "") return undefined;
  return {
    namespace,
    name,
    look: async (signal) => {
      const call = { lane: "objects", resource: serviceAccounts, place: { namespace, name }, signal } as const;
      const { metadata } = await client.get(call);
      return { uid: metadata.uid, annotations: metadata.annotations ?? {} };
    },
    token: async (audience, accountUid, signal) => {
      return (await tokens.obtain(pod, { path: "", audience, accountUid }, signal)).token;
    },
  };
}
