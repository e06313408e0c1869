"""What nvidia-smi prints, by generation of the driver."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = {  # generation: (label of the driver, label of CUDA, first sign of the rule under the header)
    "old": ("Driver Version", "CUDA Version", "|"),
    "R580": ("Driver Version", "CUDA Version", "+"),
    "R610": ("KMD Version", "CUDA UMD Version", "+"),
}


@dataclass(frozen=True)
class Cards:
    """The cards of a machine, all alike."""

    name: str
    mib: int
    cc: str
    driver: str
    cuda: str
    count: int = 1
    used: int = 0
    smi: str = ""
    slices: tuple[str, ...] = ()
    mig: bool = False
    old_query: bool = False

    def generation(self) -> str:
        """Return how the header of this driver looks."""
        major = int(self.driver.split(".")[0])
        return "old" if major < 580 else "R580" if major < 600 else "R610"

    def table(self) -> str:
        """Return what plain ``nvidia-smi`` prints."""
        driver, cuda, sign = HEADER[self.generation()]
        rows = [
            f"+{'-' * 89}+",
            f"| NVIDIA-SMI {self.smi or self.driver:<22} {driver}: {self.driver:<12} {cuda}: {self.cuda:<8}|",
            f"{sign}{'-' * 41}+{'-' * 24}+{'-' * 22}+",
            "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        ]
        for index in range(self.count):
            use = f"{self.used}MiB / {self.mib:>6}MiB"
            state = "Enabled" if self.mig else "Disabled"
            rows += [
                f"|   {index}  {self.name:<24}    On  |   00000000:{index + 25:X}:00.0 Off |                    0 |",
                f"| N/A   32C    P0             70W /  700W |   {use} |      0%      Default |",
                f"|                                         |                        |             {state:>8} |",
            ]
        if self.mig and self.slices:
            rows.append("| MIG devices:                                                                            |")
            rows.append("|  0    2   0   0  |            3892MiB / 40448MiB    | 42      0 |  3   0    2    0    0 |")
        elif self.mig:
            rows.append("|  No MIG devices found                                                                   |")
        return "\n".join(rows) + "\n"

    def query(self) -> dict[str, object]:
        """Return the answer to --query-gpu; R470 and older do not know compute_cap."""
        if self.old_query:
            return {"rc": 2, "out": 'Field "compute_cap" is not a valid field to query.\n'}
        rows = ["index, name, memory.total [MiB], compute_cap, driver_version"]
        rows += [f"{i}, {self.name}, {self.mib} MiB, {self.cc}, {self.driver}" for i in range(self.count)]
        return {"rc": 0, "out": "\n".join(rows) + "\n"}

    def listing(self) -> str:
        """Return what ``nvidia-smi -L`` prints."""
        lines = []
        for index in range(self.count):
            lines.append(f"GPU {index}: {self.name} (UUID: GPU-0000000{index})")
            lines += [
                f"  MIG {name}     Device  {place}: (UUID: MIG-{place})" for place, name in enumerate(self.slices)
            ]
        return "\n".join(lines) + "\n"
