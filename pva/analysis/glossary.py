"""What the columns of analyses mean: a column of one name means the same in every analysis.

`NAME:UNIT` is a column in that unit alone. An analysis whose column means something else says so
where it declares it.
"""

from __future__ import annotations

_TEXT = """
*: one column for each that there is
about: memory or time
access: read, written, or both
active_cycles: cycles in which a vertex was run
active_tile_balance: mean / most cycles of the tiles that did something
active_tiles: tiles that did something
address: byte address on the tile
advice: what to try
after:bytes: bytes in the second report
after:cycles: cycles in the second report
after: the program that the tiles come from
all_cycles: cycles with those hidden behind earlier steps
always_live:bytes: bytes of the variables that are always live
always_live: true if the variable is live all the time
always_live_bytes: bytes of the variables that are always live
amount: how much, in the unit of the row
answered: requests that were answered
architecture: architecture of the IPU, such as ipu2
at_peak: true if it is live where liveness peaks
balance: mean / most
basis: what the waits were computed from
batch: number of the batch
batches: batches that ran
before: value in the first of the two
before:bytes: bytes in the first report
before:cycles: cycles in the first report
begin: first program step at which it is live
begin_ns: begin, counted from the begin of the trace
between_ns: time outside runs
between_regions: gaps between the regions of memory
both_cycles: cycles in which it exchanges with the host and computes
bubble: part of the tile cycles waiting for another IPU, which computes
busiest_receiver: tile that receives the most
busiest_receiver_bytes: bytes that this tile receives
busiest_sender: tile that sends the most
busiest_sender_bytes: bytes that this tile sends
busiest_share: part of the cycles in which the busiest tile is busy
busiest_tile: tile that is busy longest
busy: cycles of compute, exchange and host exchange
busy_ns: time inside events
busy_share: part of all cycles in which the tile is busy
byte_steps: bytes times program steps
bytes: bytes
bytes_at_least: lower bound of the bytes
bytes_at_most: upper bound of the bytes
bytes_in: bytes from the host to the device
bytes_including_gaps: bytes with the gaps between data
bytes_out: bytes from the device to the host
bytes_per_cycle: bytes in a cycle through the tile that moves the most
bytes_per_second: bytes in a second, by the clock of the tiles
bytes_per_tile: memory of a tile
bytes_received: bytes received
bytes_sent: bytes sent
callback: part of the time in stream callbacks
callback_ns: time in stream callbacks
category: category of memory
cause: what makes the runs longer
change: the last minus the first
channel: channel of the host trace
code: code of vertices, programs or exchanges; -1 where it was not counted
code_bytes: code of the exchange on all tiles; -1 where it is not known
code_counted: true if the report counts code
collective: part of the time in collectives
column: column in which it lies
compiled: type of the program after compilation
compute: part of the tile cycles in compute
compute:cycles: cycles of compute
compute_cycles: cycles of compute steps
compute_float_peak_share: operations of compute steps / peak for float in their cycles
compute_half_peak_share: operations of compute steps / peak for half in their cycles
compute_ns: time in the run itself
compute_set: number of the compute set
compute_set_name: name of the compute set
compute_share: part of the tile cycles in compute
configured: true for the model as it is configured
context: number of the debug context
contexts: debug contexts
control_code: control code; -1 where it was not counted
copy_pointers: bytes of copy pointers of vertices
count: how many
created: when the program was compiled
cycle: cycle of the arrival
cycles: cycles by which it made the recorded runs longer, or that it takes
cycles_from: first cycle
cycles_once: active cycles when each vertex runs once
cycles_overlapped: cycles hidden behind earlier steps
cycles_to: cycle after the last
data_balance: mean / most bytes of the tiles that exchange
delay: instructions that wait for other tiles
delay_ns: delay of the batcher
depth: how deep it lies in others
descriptors: bytes of descriptors of vertices
destination: what the program writes to
deviation: standard deviation over the tiles
device_microseconds: time on the device, by the clock of the tiles
device_ns: time in which devices run batches
device_share: part of the time in which devices run batches
differs: true if it differs from most
download_ns: time to cut and hand out the outputs
duration_ns: duration
dynamic: true if the model forms batches of several requests
edge_pointers: bytes of edge pointers of vertices
elsewhere: what no operation has
end: end, which no longer belongs to it
end_microseconds: end on the host, since the epoch
end_ns: end, counted from the begin of the trace
end_step: step after the last
estimated_cycles: cycles that the compiler estimated
events: events of the host trace
events_after: events in the second trace
events_before: events in the first trace
exact: true if the bounds agree
excess_bytes: bytes of the fullest tile above an even share of all tiles
excess_cycles: cycles of all executions above the estimate
exchange: part of the tile cycles in exchange
exchange:bytes: instructions that exchange
exchange:cycles: cycles of exchange
exchange_code: code of exchanges; -1 where it was not counted
exchange_share: part of the tile cycles in exchange
execute_ns: time in which the program runs
executions: executions in the recorded runs; -1 where steps were not recorded
exit_code: exit code of the process
explained: part of the wait that its cause explains
exposed_cycles: cycles by which it made the runs longer
exposed_share: part of the cycles of the run in which only it goes on
fan_out: bytes received / bytes sent
figure: what is counted
file: source file
fill: part of the rows that are not padding
first: the first
first_name: program of the first step at which it is live
first_step: first step; -1 for none
float_peak: operations in a second at the peak for float
float_peak_share: operations / peak for float
flops: floating-point operations
flops_per_cycle: floating-point operations in a cycle
flops_per_second: floating-point operations in a second
for_ipu: IPU that is waited for
for_tile: tile that is waited for
free: bytes left on the tile; negative where they lack
from_host: bytes from the host
from_ipu: IPU that sends
from_last: last tile of the group that sends
from_tile: first tile of the group that sends
fullest_bytes: bytes that the fullest tile needs, gaps included
fullest_bytes_excluding_gaps: most data of a tile, without gaps
fullest_share: part of its memory that the fullest tile needs
fullest_tile: tile with the most bytes
fullest_tile_excluding_gaps: tile with the most data
function: function in the source
gap_microseconds: time from the end of the run before on the host
gap_share: gaps / all that is needed
gaps: bytes that alignment and fragmentation leave unused
global_bytes_in: bytes from other IPUs
global_bytes_out: bytes to other IPUs
global_exchange: part of the tile cycles in exchange between IPUs
global_received: bytes received from other IPUs
global_sent: bytes sent to other IPUs
graph: hash of the compiled graph
half_peak: operations in a second at the peak for half
half_peak_share: operations / peak for half
hidden_cycles: cycles hidden behind other work
hidden_share: part of the exchange with the host that is hidden
high_kb: end of the range
host: name of the host
host:fraction: part of the tile cycles in exchange with the host
host_exchange: part of the tile cycles in exchange with the host
host_exchange:cycles: cycles of exchange with the host
host_exchange_share: part of the tile cycles in exchange with the host
host_share: part of the tile cycles in exchange with the host
how: answered, or why the request failed
id: number of the request
idle_cycles: cycles in which workers were idle, in all executions
idle_share: part of the tile cycles after the tile had ended
imbalance: part of the tile cycles waiting for the slowest tile of the IPU in a compute set
including_gaps: bytes with gaps, by region
in: which of the two has it: before, after, or both
instance: number of the instance
instances: how many of it there are
interleaved: bytes in interleaved memory
interleaved_gaps: gaps in interleaved memory
io_cycles: cycles in which some tile exchanges with the host
io_tiles: tiles that only exchange with the host
ipu: number of the IPU
ipus: IPUs
items: items that the runs took in, on all replicas
items_per_second: items in a second, by the clock of the tiles
json: further keys of the debug context
key: key of the node
kind: kind
label: label
labels: different texts of the events
largest_category: category with the most bytes
largest_category_bytes: bytes of this category
largest_variable: largest variable live at the peak
largest_variable_bytes: bytes of this variable
last: the last
last_name: program of the last step at which it is live
last_reader: last program that reads it
last_step: last step; -1 for none
last_tile: last tile of the group
last_writer: last program that writes it
late_ns: time behind the first instance
latency_cycles: cycles from the begin of the first input to the end of the last output
latency_max_ns: longest latency
latency_mean_ns: mean latency
latency_ns: time from arrival to answer
latency_p50_ns: median latency
latency_p90_ns: latency that 90 % of the requests do not exceed
latency_p95_ns: latency that 95 % of the requests do not exceed
latency_p99_9_ns: latency that 99.9 % of the requests do not exceed
latency_p99_ns: latency that 99 % of the requests do not exceed
latency_seconds: time from the begin of the first input to the end of the last output
layer: outermost scope of the debug names
layers: how many layers move
least: least
line: line of the source file
live: bytes that are live on the fullest tile of the group
liveness_step: program step, as in liveness_curve; -1 for none
load: requests that arrived in a second
longest: the longest
longest_ns: duration of the longest
longest_step: step with the most cycles
lost_cycles: cycles that all executions would save with even tiles
low_kb: begin of the range
max_cycles: most cycles
max_live: most bytes that are live at once
max_ns: longest
mean: mean
mean_bytes: bytes of the mean tile
mean_cycles: mean cycles of the tiles or executions
mean_ns: mean duration
mean_tile_balance: mean tile balance of its steps
mean_wait: how long a tile of the IPU waits on average
meanwhile: what the IPU that is waited for runs longest meanwhile
measured_cycles: cycles that instrumentation measured last
measured_saving: what the best trial saved
method: how the clocks were compared
min_cycles: least cycles
min_ns: shortest
model: name of the model
most: most
most_bytes: bytes on the fullest tile
most_live: most bytes that are live at once
most_on_a_tile: most bytes on one tile
name: debug name
non_interleaved: bytes in non-interleaved memory
non_interleaved_gaps: gaps in non-interleaved memory
not_always_live: bytes of the variables that are not always live
not_overlapped: bytes that share their place with nothing
not_overlapped_by_category: bytes that share their place with nothing, by category
number: number of the control program or function
occurrence: number of the event among those of its label
of: what the saving is a part of
offset_ns: time added to the clock of the instance
on_fullest: part of the saving that is on the fullest tile
operand: row of the compute set or exchange that the program runs; -1 for none
operand_name: name of this compute set or exchange
operation: operation, by its scope in the debug names
operations: operations
option: engine option that records it
other: other instructions
other_ns: time that the server takes beside
outliers: executions far from the median
outside: what lies outside of the operations of the layer
over_mean: cycles / mean cycles of all tiles
overflowed: bytes that do not fit
overflowed_gaps: gaps in what does not fit
overlapped: bytes of overlapped variables
overlapped_by_category: bytes of overlapped variables, by category
overlapped_cycles: cycles hidden behind earlier steps
own: of it alone, without what lies in it
own_cycles: cycles without those of others in it
p50: median
p50_ns: median duration
p90_ns: duration that 90 % do not exceed
p95: what 95 % do not exceed
p95_ns: duration that 95 % do not exceed
p99_ns: duration that 99 % do not exceed
padding: bytes between the fields of vertices
padding:rows: rows of zeros that fill the batch
padding_rows: rows of zeros that fill batches
parallel_efficiency: compute, exchange and host exchange together
parent: row of what it lies in; -1 for none
part: part
parts: how many parts
path: place in the tree; a/b lies in a
peak_bytes: bytes that are live where liveness peaks
peak_name: program of the peak
peak_step: program step at which most is live; -1 for none
peak_type: type of the program of the peak
period_ns: time from the event before
phase: compute, exchange, host exchange or sync
physical_tile: number of the tile in hardware
pid: process
pieces: how many pieces
place: place
preferred: preferred sizes of batches
problem: why it is not known
problems: how many problems it has
program: row of the program; -1 for none
programs: how many programs
queue_longest: most requests in the queue
queue_longest_ns: longest wait for a batch
queue_mean_ns: mean wait for a batch
queue_ns: wait for a batch
ratio: the second as a multiple of the first
readers: programs that read it
reads: how often, or by how many, it is read
receive_address: instructions that set the address to receive at
receive_balance: mean / most bytes of the tiles that receive
receive_format: instructions that set the format to receive in
receive_mux: instructions that choose the tile to receive from
received: bytes received on the IPU
receivers: tiles that receive
recorded: true if it was recorded
recorded_runs: runs recorded step by step
refused: requests refused
region: region of memory
rejected: requests rejected
remote_bytes_in: bytes from remote buffers
remote_bytes_out: bytes to remote buffers
requests: requests
requests_per_second: requests in a second
residual_ns: how far off the clock may be
role: role of the program
row: row in which it lies
rows: rows
rows_per_batch: mean rows of a batch
rows_per_second: rows in a second
rule: name of the rule
run: number of the run
run:fraction: part of the time in runs
run_microseconds: time of the run on the host
runs: runs of the engine
saving: what it could save at most
saving_share: part of the whole that it could save
seconds: time
self_ns: time without that of the events directly inside
send: instructions that send
send_balance: mean / most bytes of the tiles that send
send_with_put_address: instructions that send and set the address
send_with_put_format: instructions that send and set the format
send_with_put_mux: instructions that send and set the multiplexer
senders: tiles that send
sent: bytes sent on the IPU
setup_cycles: cycles of the runs of set-up
setup_runs: runs of set-up
setup_seconds: time of the runs of set-up
severity: problem, cost or note
shape: size of each dimension
share: part of the whole
shares: how many other pieces it overlaps
show: analysis with the details
slowest_tile: tile with the most cycles
source: variable that it copies, or decides by
source_name: name of the source
span_ns: time from the first arrival to the last answer
spread_cycles: cycles of all executions above the least
stage: stage of the pipeline
stages: stages of the pipeline
start_microseconds: begin on the host, since the epoch
state: bytes of the state of vertices
steady_cycles: cycles from one batch to the next in a full pipeline
steady_items_per_second: items in a second in a full pipeline
steady_seconds: time from one batch to the next in a full pipeline
step: number of the step
steps: executed steps
straggler: true if it holds the others up
stream_bytes_in: bytes from streams
stream_bytes_out: bytes to streams
sync: part of the tile cycles in syncs
sync:cycles: cycles of syncs
sync_share: part of the tile cycles in syncs
sync_type: type of the sync
syncs: executed syncs
table: table in which it lies
target: function that is called
target_name: name of the target
tells: what the rule tells
thread_balance: active cycles / cycles of the tiles
tid: thread
tile: number of the tile
tile_balance: mean / most cycles of the tiles
tile_cycles: cycles summed over the tiles
tile_share: part of the cycles of all tiles
tiles: how many tiles
tiles_out_of_memory: tiles that need more than they have
time_shares: parts of the time by kind of step
to_host: bytes to the host
to_ipu: IPU that receives
to_last: last tile of the group that receives
to_tile: first tile of the group that receives
total: cycles of it and of what lies in it
total:bytes: bytes in all
total_cycles: cycles of all
total_data: bytes that move
total_including_gaps: bytes that the tile needs, gaps included
total_ns: time of all
trace_begin: begin in the host trace
trace_end: end in the host trace
trace_seconds: time that the host trace lasts
trial: key of the trial
try_it: command that tries it
type: type of the program
unit: unit of the row
unknown_compute_sets: compute sets that do not tell their operations
upload_ns: time to join the inputs
value: value
variable: row of the variable; -1 for none
variables: how many variables
variables:bytes: bytes of variables
version: version of the model
vertex_code: code of vertex types; -1 where it was not counted
vertex_data: bytes of the fields of vertices
vertex_state: bytes of the state of vertices
vertex_type: name of the vertex type
vertices: how many vertices; -1 where it was not recorded
vertices_per_tile: vertices on a tile that has some
wait_ns: time that others wait for it
wait_share: part of the time that others wait for it
waited_for: part of the waits of other IPUs that is for this one
waiting: part of the tile cycles in syncs, or waiting for other tiles
waiting:cycles: cycles in syncs and at the end of runs
waiting_share: part of the tile cycles in syncs and at the end of runs
waits: part of the cycles waiting for another IPU
waits:cycles: cycles waiting for the last tile
waits_for: IPU that it waits for longest; -1 for none
way: in or out
what: what stands out
where: where
whole: the whole report
why: why
windows: windows of time
worst_step: step with the longest wait
worst_wait_ns: longest wait
writers: programs that write it
writes: how often, or by how many, it is written
written: type of the program as written
"""

# By the words of the declarations (pva/analysis/columns.py).
MEANINGS = dict(line.split(": ", 1) for line in _TEXT.strip().splitlines())
