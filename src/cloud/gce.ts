import * as z from "zod";
import { checkedInstance, type CloudInstance, type CloudProvider, type NodeAddress } from "./cloud-provider.ts";
import type { Metadata } from "./metadata.ts";

const Instance = z.looseObject({
  name: z.string(),
  hostname: z.string().optional(),
  /** `projects/123/zones/us-central1-a` */
  zone: z.string(),
  machineType: z.string().optional(),
  networkInterfaces: z.array(
    z.looseObject({
      ip: z.string().optional(),
      ipv6: z.array(z.string()).optional(),
      accessConfigs: z.array(z.looseObject({ externalIp: z.string().optional() })).optional(),
    }),
  ),
});

const flavor = ["Metadata-Flavor", "Google"] as const;

/** Google Compute Engine's metadata server. */
export class GceMetadata implements CloudProvider {
  readonly name = "gce";
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  async instance(signal: AbortSignal): Promise<CloudInstance> {
    const of = (path: string) => ({
      path: `/computeMetadata/v1/${path}`,
      headers: { [flavor[0]]: flavor[1] },
      proof: flavor,
    });
    const project = await this.#metadata.required(of("project/project-id"), signal);
    const instance = Instance.safeParse(await this.#metadata.json(of("instance/?recursive=true"), signal));
    if (!instance.success) {
      throw new Error(`unexpected instance document of the metadata service: ${z.prettifyError(instance.error)}`);
    }
    const { name, hostname = "", zone: zonePath, machineType = "", networkInterfaces } = instance.data;
    const zone = last(zonePath);
    const addresses = networkInterfaces.flatMap(({ ip = "", ipv6 = [], accessConfigs = [] }): NodeAddress[] => [
      ...[ip, ...ipv6].map((address) => ({ type: "InternalIP" as const, address })),
      ...accessConfigs.map(({ externalIp = "" }) => ({ type: "ExternalIP" as const, address: externalIp })),
    ]);
    return checkedInstance({
      providerId: `gce://${project}/${zone}/${name}`,
      instanceType: last(machineType),
      zone,
      region: zone.replace(/-[^-]*$/u, ""),
      addresses: [...addresses, { type: "InternalDNS" as const, address: hostname }].filter(
        ({ address }) => address !== "",
      ),
    });
  }
}

function last(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
