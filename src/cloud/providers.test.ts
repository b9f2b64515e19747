import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { ec2Machine, type MetadataServer, startMetadataServer } from "../../test/support/metadata-server.ts";
import { systemMetadataService } from "../linux/http/metadata-service.ts";
import { AzureMetadata } from "./azure.ts";
import type { CloudInstance, CloudProvider } from "./cloud-provider.ts";
import { Ec2Metadata } from "./ec2.ts";
import { GceMetadata } from "./gce.ts";
import { Metadata } from "./metadata.ts";

const never = new AbortController().signal;

/** What a provider makes of a service that answers like this. */
async function asked(
  Provider: new (metadata: Metadata) => CloudProvider,
  reply: MetadataServer["reply"],
): Promise<CloudInstance> {
  await using server = await startMetadataServer(reply);
  const clock = new ManualClock();
  return await new Provider(new Metadata({ service: systemMetadataService, clock, url: server.url })).instance(never);
}

const gceInstance = {
  name: "node-1",
  hostname: "node-1.c.project-a.internal",
  zone: "projects/123/zones/europe-west3-c",
  machineType: "projects/123/machineTypes/e2-medium",
  networkInterfaces: [{ ip: "10.2.0.4", accessConfigs: [{ externalIp: "203.0.113.9" }, {}] }, { ip: "10.3.0.4" }],
};

function gceMachine(instance: unknown): MetadataServer["reply"] {
  return ({ url = "", headers }) => {
    if (headers["metadata-flavor"] !== "Google") return { status: 403 };
    return url.endsWith("/project/project-id") ? "project-a" : JSON.stringify(instance);
  };
}

test("EC2 describes its machine to requests with a token", async () => {
  assert.deepEqual(await asked(Ec2Metadata, ec2Machine()), {
    providerId: "aws:///eu-central-1b/i-0123456789abcdef0",
    instanceType: "m7g.large",
    zone: "eu-central-1b",
    region: "eu-central-1",
    addresses: [
      { type: "InternalIP", address: "10.1.2.3" },
      { type: "ExternalIP", address: "198.51.100.7" },
      { type: "InternalDNS", address: "ip-10-1-2-3.eu-central-1.compute.internal" },
      { type: "InternalDNS", address: "example.org" },
      { type: "ExternalDNS", address: "ec2-198-51-100-7.eu-central-1.compute.amazonaws.com" },
    ],
  });
  const without = { "placement/region": { status: 404 }, "public-ipv4": { status: 404 }, "public-hostname": "" };
  const older = await asked(Ec2Metadata, ec2Machine(without));
  assert.deepEqual([older.region, older.addresses.length], ["eu-central-1", 3]);
});

test("EC2 supports machines with both address families, with IPv6 only, and without any", async () => {
  const internal = async (more: Parameters<typeof ec2Machine>[0]): Promise<string[]> => {
    const { addresses } = await asked(Ec2Metadata, ec2Machine(more));
    return addresses.flatMap(({ type, address }) => (type === "InternalIP" ? [address] : []));
  };
  assert.deepEqual(await internal({ ipv6: "2001:db8::1" }), ["10.1.2.3", "2001:db8::1"]);
  const none = { status: 404 };
  assert.deepEqual(await internal({ ipv6: "2001:db8::1", "local-ipv4": none }), ["2001:db8::1"]);
  await assert.rejects(internal({ "local-ipv4": none }), /local-ipv4: not found at the metadata service/u);
});

test("GCE describes its machine in one object, with proof that it is GCE", async () => {
  assert.deepEqual(await asked(GceMetadata, gceMachine(gceInstance)), {
    providerId: "gce://project-a/europe-west3-c/node-1",
    instanceType: "e2-medium",
    zone: "europe-west3-c",
    region: "europe-west3",
    addresses: [
      { type: "InternalIP", address: "10.2.0.4" },
      { type: "ExternalIP", address: "203.0.113.9" },
      { type: "InternalIP", address: "10.3.0.4" },
      { type: "InternalDNS", address: "node-1.c.project-a.internal" },
    ],
  });
  const other = asked(GceMetadata, () => ({ status: 200, headers: { "Metadata-Flavor": "Mine" } }));
  await assert.rejects(other, /is not from that cloud: it has no header Metadata-Flavor: Google/u);
});

test("Azure describes its machine, with a fault domain if there are no zones", async () => {
  const resourceId =
    "/subscriptions/s-1/resourceGroups/my(group)/providers/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/0";
  const compute = {
    resourceId,
    location: "WestEurope",
    zone: "2",
    platformFaultDomain: "1",
    vmSize: "Standard_D4s_v5",
  };
  const addresses = [{ privateIpAddress: "10.4.0.5", publicIpAddress: "" }];
  const network = { interface: [{ ipv4: { ipAddress: addresses }, ipv6: { ipAddress: [] } }] };
  const machine = (more: object): MetadataServer["reply"] => {
    const text = JSON.stringify({ compute: { ...compute, ...more }, network });
    return ({ headers }) => (headers["metadata"] === "true" ? text : { status: 400 });
  };
  assert.deepEqual(await asked(AzureMetadata, machine({})), {
    providerId: `azure://${resourceId}`,
    instanceType: "Standard_D4s_v5",
    zone: "westeurope-2",
    region: "westeurope",
    addresses: [{ type: "InternalIP", address: "10.4.0.5" }],
  });
  assert.equal((await asked(AzureMetadata, machine({ zone: "" }))).zone, "1");
});

describe("an invalid metadata service", () => {
  const hostile: readonly (readonly [what: string, reply: MetadataServer["reply"], message: RegExp])[] = [
    [
      "refuses",
      () => ({ status: 500 }),
      /PUT http:.*\/latest\/api\/token: the metadata service answered with status 500/u,
    ],
    ["leads elsewhere", () => ({ status: 302, headers: { location: "http://127.0.0.1:1/" } }), /with status 302/u],
    [
      "knows no machine",
      ec2Machine({ "instance-id": { status: 404 } }),
      /instance-id: not found at the metadata service/u,
    ],
    [
      "never ends",
      ec2Machine({ "instance-id": "x".repeat(300_000) }),
      /instance-id: the response is longer than 262144 bytes/u,
    ],
    ["gives a provider id of its liking", ec2Machine({ "instance-id": "a b\nc" }), /"aws:.*" is not a provider ID/u],
    [
      "gives a zone that is no label",
      ec2Machine({ "placement/availability-zone": "../x" }),
      /the zone "\.\.\/x" is not a valid label value/u,
    ],
    [
      "gives a type that is no label",
      ec2Machine({ "instance-type": "a".repeat(80) }),
      /the instance type "a{60}…" is not a valid label value/u,
    ],
    [
      "gives an address that is none",
      ec2Machine({ "local-ipv4": "10.1.2.3.4" }),
      /the address "10\.1\.2\.3\.4" is not a valid InternalIP/u,
    ],
    [
      "gives a name that is none",
      ec2Machine({ "local-hostname": "<script>" }),
      /the address "<script>" is not a valid InternalDNS/u,
    ],
  ];
  for (const [what, reply, message] of hostile) {
    test(`is reported by name when it ${what}`, async () => {
      await assert.rejects(asked(Ec2Metadata, reply), message);
    });
  }

  test("is reported when its response is not JSON, or JSON of another shape", async () => {
    await assert.rejects(
      asked(GceMetadata, ({ url = "" }) => (url.endsWith("project-id") ? "p" : "<html>")),
      /the response is not JSON/u,
    );
    await assert.rejects(
      asked(GceMetadata, gceMachine({ name: 1 })),
      /unexpected instance document .*expected string/su,
    );
    const nowhere = asked(GceMetadata, gceMachine({ ...gceInstance, hostname: "", networkInterfaces: [] }));
    await assert.rejects(nowhere, /the machine has no address/u);
  });

  test("is waited for, five seconds per request", async () => {
    await using server = await startMetadataServer(() => undefined);
    const clock = new ManualClock();
    const metadata = new Metadata({ service: systemMetadataService, clock, url: server.url });
    const refused = assert.rejects(
      new Ec2Metadata(metadata).instance(never),
      /latest\/api\/token: timed out after 5 s/u,
    );
    await clock.advance(5000);
    await refused;
  });

  test("is reported when it is absent", async () => {
    const server = await startMetadataServer(() => undefined);
    await server[Symbol.asyncDispose]();
    const metadata = new Metadata({ service: systemMetadataService, clock: new ManualClock(), url: server.url });
    await assert.rejects(new Ec2Metadata(metadata).instance(never), /PUT http:.*ECONNREFUSED/u);
  });
});
