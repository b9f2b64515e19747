import * as z from "zod";
import { checkedInstance, type CloudInstance, type CloudProvider, type NodeAddress } from "./cloud-provider.ts";
import type { Metadata } from "./metadata.ts";

const Text = z.string().optional();
const Addresses = z
  .looseObject({
    ipAddress: z.array(z.looseObject({ privateIpAddress: Text, publicIpAddress: Text })).optional(),
  })
  .optional();

const Instance = z.looseObject({
  compute: z.looseObject({
    /** `/subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/virtualMachines/…` */
    resourceId: z.string(),
    location: z.string(),
    /** `1`; empty where the region has no zones. */
    zone: Text,
    platformFaultDomain: Text,
    vmSize: Text,
  }),
  network: z.looseObject({ interface: z.array(z.looseObject({ ipv4: Addresses, ipv6: Addresses })) }),
});

/** Azure's instance metadata service. */
export class AzureMetadata implements CloudProvider {
  readonly name = "azure";
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  async instance(signal: AbortSignal): Promise<CloudInstance> {
    const path = "/metadata/instance?api-version=2021-02-01";
    const instance = Instance.safeParse(await this.#metadata.json({ path, headers: { Metadata: "true" } }, signal));
    if (!instance.success) {
      throw new Error(`unexpected instance document of the metadata service: ${z.prettifyError(instance.error)}`);
    }
    const { compute, network } = instance.data;
    const region = compute.location.toLowerCase();
    const all = network.interface.flatMap(({ ipv4, ipv6 }) => [...(ipv4?.ipAddress ?? []), ...(ipv6?.ipAddress ?? [])]);
    const addresses = all.flatMap(({ privateIpAddress = "", publicIpAddress = "" }): NodeAddress[] => [
      { type: "InternalIP", address: privateIpAddress },
      { type: "ExternalIP", address: publicIpAddress },
    ]);
    return checkedInstance({
      providerId: `azure://${compute.resourceId}`,
      instanceType: compute.vmSize ?? "",
      // As Azure's cloud provider: without zones, the fault domain is what fails together.
      zone: compute.zone ? `${region}-${compute.zone}` : (compute.platformFaultDomain ?? ""),
      region,
      addresses: addresses.filter(({ address }) => address !== ""),
    });
  }
}
