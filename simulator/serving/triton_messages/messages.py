"""The messages of Triton's interface: names, numbers and types of their fields.

`MODEL` is what `config.pbtxt` is written in, `SERVICE` what gRPC carries. A message is a line:
`Name: number field type, ...`; `*` is a repeated field, `map T` one from text to T, `map64 T`
from whole numbers, `|group` a field of which one in the group is set. Source: the public interface
of Triton Inference Server, model_config.proto and grpc_service.proto of its repository `common`, as
of release 2.73 of the clients.
"""

MODEL = """
enum DataType: TYPE_INVALID 0, TYPE_BOOL 1, TYPE_UINT8 2, TYPE_UINT16 3, TYPE_UINT32 4,
    TYPE_UINT64 5, TYPE_INT8 6, TYPE_INT16 7, TYPE_INT32 8, TYPE_INT64 9, TYPE_FP16 10, TYPE_FP32
    11, TYPE_FP64 12, TYPE_STRING 13, TYPE_BF16 14
ModelRateLimiter: 1 resources ModelRateLimiter.Resource*, 2 priority uint32
ModelRateLimiter.Resource: 1 name string, 2 global bool, 3 count uint32
ModelInstanceGroup: 1 name string, 4 kind ModelInstanceGroup.Kind, 2 count int32, 6 rate_limiter
    ModelRateLimiter, 3 gpus int32*, 8 secondary_devices ModelInstanceGroup.SecondaryDevice*, 5
    profile string*, 7 passive bool, 9 host_policy string
enum ModelInstanceGroup.Kind: KIND_AUTO 0, KIND_GPU 1, KIND_CPU 2, KIND_MODEL 3
ModelInstanceGroup.SecondaryDevice: 1 kind ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind,
    2 device_id int64
enum ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind: KIND_NVDLA 0
ModelTensorReshape: 1 shape int64*
ModelInput: 1 name string, 2 data_type DataType, 3 format ModelInput.Format, 4 dims int64*, 5
    reshape ModelTensorReshape, 6 is_shape_tensor bool, 7 allow_ragged_batch bool, 8 optional
    bool, 9 is_non_linear_format_io bool
enum ModelInput.Format: FORMAT_NONE 0, FORMAT_NHWC 1, FORMAT_NCHW 2
ModelOutput: 1 name string, 2 data_type DataType, 3 dims int64*, 5 reshape ModelTensorReshape, 4
    label_filename string, 6 is_shape_tensor bool, 7 is_non_linear_format_io bool
BatchInput: 1 kind BatchInput.Kind, 2 target_name string*, 3 data_type DataType, 4 source_input
    string*
enum BatchInput.Kind: BATCH_ELEMENT_COUNT 0, BATCH_ACCUMULATED_ELEMENT_COUNT 1,
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO 2, BATCH_MAX_ELEMENT_COUNT_AS_SHAPE 3,
    BATCH_ITEM_SHAPE 4, BATCH_ITEM_SHAPE_FLATTEN 5
BatchOutput: 1 target_name string*, 2 kind BatchOutput.Kind, 3 source_input string*
enum BatchOutput.Kind: BATCH_SCATTER_WITH_INPUT_SHAPE 0
ModelVersionPolicy: 1 latest ModelVersionPolicy.Latest |policy_choice, 2 all
    ModelVersionPolicy.All |policy_choice, 3 specific ModelVersionPolicy.Specific |policy_choice
ModelVersionPolicy.Latest: 1 num_versions uint32
ModelVersionPolicy.All:
ModelVersionPolicy.Specific: 1 versions int64*
ModelOptimizationPolicy: 1 graph ModelOptimizationPolicy.Graph, 2 priority
    ModelOptimizationPolicy.ModelPriority, 3 cuda ModelOptimizationPolicy.Cuda, 4
    execution_accelerators ModelOptimizationPolicy.ExecutionAccelerators, 5 input_pinned_memory
    ModelOptimizationPolicy.PinnedMemoryBuffer, 6 output_pinned_memory
    ModelOptimizationPolicy.PinnedMemoryBuffer, 7 gather_kernel_buffer_threshold uint32, 8
    eager_batching bool
enum ModelOptimizationPolicy.ModelPriority: PRIORITY_DEFAULT 0, PRIORITY_MAX 1, PRIORITY_MIN 2
ModelOptimizationPolicy.Graph: 1 level int32
ModelOptimizationPolicy.Cuda: 1 graphs bool, 2 busy_wait_events bool, 3 graph_spec
    ModelOptimizationPolicy.Cuda.GraphSpec*, 4 output_copy_stream bool
ModelOptimizationPolicy.Cuda.GraphSpec: 1 batch_size int32, 2 input map
    ModelOptimizationPolicy.Cuda.GraphSpec.Shape, 3 graph_lower_bound
    ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound
ModelOptimizationPolicy.Cuda.GraphSpec.Shape: 1 dim int64*
ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound: 1 batch_size int32, 2 input map
    ModelOptimizationPolicy.Cuda.GraphSpec.Shape
ModelOptimizationPolicy.ExecutionAccelerators: 1 gpu_execution_accelerator
    ModelOptimizationPolicy.ExecutionAccelerators.Accelerator*, 2 cpu_execution_accelerator
    ModelOptimizationPolicy.ExecutionAccelerators.Accelerator*
ModelOptimizationPolicy.ExecutionAccelerators.Accelerator: 1 name string, 2 parameters map string
ModelOptimizationPolicy.PinnedMemoryBuffer: 1 enable bool
ModelQueuePolicy: 1 timeout_action ModelQueuePolicy.TimeoutAction, 2 default_timeout_microseconds
    uint64, 3 allow_timeout_override bool, 4 max_queue_size uint32
enum ModelQueuePolicy.TimeoutAction: REJECT 0, DELAY 1
ModelDynamicBatching: 1 preferred_batch_size int32*, 2 max_queue_delay_microseconds uint64, 3
    preserve_ordering bool, 4 priority_levels uint64, 5 default_priority_level uint64, 6
    default_queue_policy ModelQueuePolicy, 7
    priority_queue_policy map64 ModelQueuePolicy
ModelSequenceBatching: 3 direct ModelSequenceBatching.StrategyDirect |strategy_choice, 4 oldest
    ModelSequenceBatching.StrategyOldest |strategy_choice, 1 max_sequence_idle_microseconds
    uint64, 2 control_input ModelSequenceBatching.ControlInput*, 5 state
    ModelSequenceBatching.State*, 6 iterative_sequence bool
ModelSequenceBatching.Control: 1 kind ModelSequenceBatching.Control.Kind, 2 int32_false_true
    int32*, 3 fp32_false_true float*, 5 bool_false_true bool*, 4 data_type DataType
enum ModelSequenceBatching.Control.Kind: CONTROL_SEQUENCE_START 0, CONTROL_SEQUENCE_READY 1,
    CONTROL_SEQUENCE_END 2, CONTROL_SEQUENCE_CORRID 3
ModelSequenceBatching.ControlInput: 1 name string, 2 control ModelSequenceBatching.Control*
ModelSequenceBatching.InitialState: 1 data_type DataType, 2 dims int64*, 3 zero_data bool
    |state_data, 4 data_file string |state_data, 5 name string
ModelSequenceBatching.State: 1 input_name string, 2 output_name string, 3 data_type DataType, 4
    dims int64*, 5 initial_state ModelSequenceBatching.InitialState*, 6
    use_same_buffer_for_input_output bool, 7 use_growable_memory bool
ModelSequenceBatching.StrategyDirect: 1 max_queue_delay_microseconds uint64, 2
    minimum_slot_utilization float
ModelSequenceBatching.StrategyOldest: 1 max_candidate_sequences int32, 2 preferred_batch_size
    int32*, 3 max_queue_delay_microseconds uint64, 4 preserve_ordering bool
ModelEnsembling: 1 step ModelEnsembling.Step*, 2 max_inflight_requests uint32
ModelEnsembling.Step: 1 model_name string, 2 model_version int64, 3 input_map map string, 4
    output_map map string, 5 model_namespace string
ModelParameter: 1 string_value string
ModelWarmup: 1 name string, 2 batch_size uint32, 3 inputs map ModelWarmup.Input, 4 count uint32
ModelWarmup.Input: 1 data_type DataType, 2 dims int64*, 3 zero_data bool |input_data_type, 4
    random_data bool |input_data_type, 5 input_data_file string |input_data_type
ModelOperations: 1 op_library_filename string*
ModelTransactionPolicy: 1 decoupled bool
ModelRepositoryAgents: 1 agents ModelRepositoryAgents.Agent*
ModelRepositoryAgents.Agent: 1 name string, 2 parameters map string
ModelResponseCache: 1 enable bool
ModelMetrics: 1 metric_control ModelMetrics.MetricControl*
ModelMetrics.MetricControl: 1 metric_identifier ModelMetrics.MetricControl.MetricIdentifier, 2
    histogram_options ModelMetrics.MetricControl.HistogramOptions |metric_options
ModelMetrics.MetricControl.MetricIdentifier: 1 family string
ModelMetrics.MetricControl.HistogramOptions: 1 buckets double*
ModelConfig: 1 name string, 2 platform string, 17 backend string, 25 runtime string, 3
    version_policy ModelVersionPolicy, 4 max_batch_size int32, 5 input ModelInput*, 6 output
    ModelOutput*, 20 batch_input BatchInput*, 21 batch_output BatchOutput*, 12 optimization
    ModelOptimizationPolicy, 11 dynamic_batching ModelDynamicBatching |scheduling_choice, 13
    sequence_batching ModelSequenceBatching |scheduling_choice, 15 ensemble_scheduling
    ModelEnsembling |scheduling_choice, 7 instance_group ModelInstanceGroup*, 8
    default_model_filename string, 9 cc_model_filenames map string, 10 metric_tags map string, 14
    parameters map ModelParameter, 16 model_warmup ModelWarmup*, 18 model_operations
    ModelOperations, 19 model_transaction_policy ModelTransactionPolicy, 23
    model_repository_agents ModelRepositoryAgents, 24 response_cache ModelResponseCache, 26
    model_metrics ModelMetrics
"""

SERVICE = """
ServerLiveRequest:
ServerLiveResponse: 1 live bool
ServerReadyRequest:
ServerReadyResponse: 1 ready bool
ModelReadyRequest: 1 name string, 2 version string
ModelReadyResponse: 1 ready bool
ServerMetadataRequest:
ServerMetadataResponse: 1 name string, 2 version string, 3 extensions string*
ModelMetadataRequest: 1 name string, 2 version string
ModelMetadataResponse: 1 name string, 2 versions string*, 3 platform string, 4 inputs
    ModelMetadataResponse.TensorMetadata*, 5 outputs ModelMetadataResponse.TensorMetadata*
ModelMetadataResponse.TensorMetadata: 1 name string, 2 datatype string, 3 shape int64*
InferParameter: 1 bool_param bool |parameter_choice, 2 int64_param int64 |parameter_choice, 3
    string_param string |parameter_choice, 4 double_param double |parameter_choice, 5 uint64_param
    uint64 |parameter_choice
InferTensorContents: 1 bool_contents bool*, 2 int_contents int32*, 3 int64_contents int64*, 4
    uint_contents uint32*, 5 uint64_contents uint64*, 6 fp32_contents float*, 7 fp64_contents
    double*, 8 bytes_contents bytes*
ModelInferRequest: 1 model_name string, 2 model_version string, 3 id string, 4 parameters map
    InferParameter, 5 inputs ModelInferRequest.InferInputTensor*, 6 outputs
    ModelInferRequest.InferRequestedOutputTensor*, 7 raw_input_contents bytes*
ModelInferRequest.InferInputTensor: 1 name string, 2 datatype string, 3 shape int64*, 4 parameters
    map InferParameter, 5 contents InferTensorContents
ModelInferRequest.InferRequestedOutputTensor: 1 name string, 2 parameters map InferParameter
ModelInferResponse: 1 model_name string, 2 model_version string, 3 id string, 4 parameters map
    InferParameter, 5 outputs ModelInferResponse.InferOutputTensor*, 6 raw_output_contents bytes*
ModelInferResponse.InferOutputTensor: 1 name string, 2 datatype string, 3 shape int64*, 4
    parameters map InferParameter, 5 contents InferTensorContents
ModelStreamInferResponse: 1 error_message string, 2 infer_response ModelInferResponse
ModelConfigRequest: 1 name string, 2 version string
ModelConfigResponse: 1 config ModelConfig
ModelStatisticsRequest: 1 name string, 2 version string
StatisticDuration: 1 count uint64, 2 ns uint64
InferStatistics: 1 success StatisticDuration, 2 fail StatisticDuration, 3 queue StatisticDuration,
    4 compute_input StatisticDuration, 5 compute_infer StatisticDuration, 6 compute_output
    StatisticDuration, 7 cache_hit StatisticDuration, 8 cache_miss StatisticDuration
InferResponseStatistics: 1 compute_infer StatisticDuration, 2 compute_output StatisticDuration, 3
    success StatisticDuration, 4 fail StatisticDuration, 5 empty_response StatisticDuration, 6
    cancel StatisticDuration
InferBatchStatistics: 1 batch_size uint64, 2 compute_input StatisticDuration, 3 compute_infer
    StatisticDuration, 4 compute_output StatisticDuration
MemoryUsage: 1 type string, 2 id int64, 3 byte_size uint64
ModelStatistics: 1 name string, 2 version string, 3 last_inference uint64, 4 inference_count
    uint64, 5 execution_count uint64, 6 inference_stats InferStatistics, 7 batch_stats
    InferBatchStatistics*, 8 memory_usage MemoryUsage*, 9 response_stats map
    InferResponseStatistics
ModelStatisticsResponse: 1 model_stats ModelStatistics*
ModelRepositoryParameter: 1 bool_param bool |parameter_choice, 2 int64_param int64
    |parameter_choice, 3 string_param string |parameter_choice, 4 bytes_param bytes
    |parameter_choice
RepositoryIndexRequest: 1 repository_name string, 2 ready bool
RepositoryIndexResponse: 1 models RepositoryIndexResponse.ModelIndex*
RepositoryIndexResponse.ModelIndex: 1 name string, 2 version string, 3 state string, 4 reason
    string
RepositoryModelLoadRequest: 1 repository_name string, 2 model_name string, 3 parameters map
    ModelRepositoryParameter
RepositoryModelLoadResponse:
RepositoryModelUnloadRequest: 1 repository_name string, 2 model_name string, 3 parameters map
    ModelRepositoryParameter
RepositoryModelUnloadResponse:
SystemSharedMemoryStatusRequest: 1 name string
SystemSharedMemoryStatusResponse: 1 regions map SystemSharedMemoryStatusResponse.RegionStatus
SystemSharedMemoryStatusResponse.RegionStatus: 1 name string, 2 key string, 3 offset uint64, 4
    byte_size uint64
SystemSharedMemoryRegisterRequest: 1 name string, 2 key string, 3 offset uint64, 4 byte_size
    uint64
SystemSharedMemoryRegisterResponse:
SystemSharedMemoryUnregisterRequest: 1 name string
SystemSharedMemoryUnregisterResponse:
CudaSharedMemoryStatusRequest: 1 name string
CudaSharedMemoryStatusResponse: 1 regions map CudaSharedMemoryStatusResponse.RegionStatus
CudaSharedMemoryStatusResponse.RegionStatus: 1 name string, 2 device_id uint64, 3 byte_size uint64
CudaSharedMemoryRegisterRequest: 1 name string, 2 raw_handle bytes, 3 device_id int64, 4 byte_size
    uint64
CudaSharedMemoryRegisterResponse:
CudaSharedMemoryUnregisterRequest: 1 name string
CudaSharedMemoryUnregisterResponse:
TraceSettingRequest: 1 settings map TraceSettingRequest.SettingValue, 2 model_name string
TraceSettingRequest.SettingValue: 1 value string*
TraceSettingResponse: 1 settings map TraceSettingResponse.SettingValue
TraceSettingResponse.SettingValue: 1 value string*
LogSettingsRequest: 1 settings map LogSettingsRequest.SettingValue
LogSettingsRequest.SettingValue: 1 bool_param bool |parameter_choice, 2 uint32_param uint32
    |parameter_choice, 3 string_param string |parameter_choice
LogSettingsResponse: 1 settings map LogSettingsResponse.SettingValue
LogSettingsResponse.SettingValue: 1 bool_param bool |parameter_choice, 2 uint32_param uint32
    |parameter_choice, 3 string_param string |parameter_choice
"""
