module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c2_i32 = arith.constant 2 : i32
    %cst = arith.constant dense<569420461> : tensor<64x64xi32>
    %cst_0 = arith.constant dense<15> : tensor<64x64xi32>
    %cst_1 = arith.constant dense<-749064809> : tensor<64x64xi32>
    %cst_2 = arith.constant dense<-749064809> : tensor<64x1xi32>
    %cst_3 = arith.constant dense<15> : tensor<64x1xi32>
    %cst_4 = arith.constant dense<569420461> : tensor<64x1xi32>
    %cst_5 = arith.constant dense<16> : tensor<64x1xi32>
    %cst_6 = arith.constant dense<-749064809> : tensor<1x64xi32>
    %cst_7 = arith.constant dense<15> : tensor<1x64xi32>
    %cst_8 = arith.constant dense<569420461> : tensor<1x64xi32>
    %cst_9 = arith.constant dense<16> : tensor<1x64xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c128_i32 = arith.constant 128 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_12 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %cst_13 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_14 = arith.constant dense<0> : tensor<64xi32>
    %cst_15 = arith.constant 1.44269502 : f32
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_17 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.splat %6 : i32 -> tensor<64xi32>
    %8 = arith.addi %7, %5 : tensor<64xi32>
    %9 = tt.expand_dims %8 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %10 = tt.splat %length : i32 -> tensor<64x1xi32>
    %11 = arith.cmpi slt, %9, %10 : tensor<64x1xi32>
    %12 = arith.extsi %length : i32 to i64
    %13 = arith.muli %3, %12 : i64
    %14 = arith.muli %heads, %c192_i32 : i32
    %15 = arith.extsi %14 : i32 to i64
    %16 = arith.muli %13, %15 : i64
    %17 = tt.addptr %qkv, %16 : !tt.ptr<$float>, i64
    %18 = arith.muli %1, %c64_i32 : i32
    %19 = tt.addptr %17, %18 : !tt.ptr<$float>, i32
    %20 = arith.muli %3, %c2_i64 : i64
    %21 = arith.muli %20, %12 : i64
    %22 = tt.addptr %groups, %21 : !tt.ptr<i32>, i64
    %23 = tt.splat %14 : i32 -> tensor<64x1xi32>
    %24 = arith.muli %9, %23 : tensor<64x1xi32>
    %25 = tt.splat %19 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %26 = tt.addptr %25, %24 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %27 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %28 = tt.broadcast %26 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %29 = tt.broadcast %27 : tensor<1x64xi32> -> tensor<64x64xi32>
    %30 = tt.addptr %28, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %31 = tt.broadcast %11 : tensor<64x1xi1> -> tensor<64x64xi1>
    %32 = tt.load %30, %31, %cst_11 : tensor<64x64x!tt.ptr<$float>>
    %33 = arith.muli %2, %heads : i32
    %34 = arith.addi %33, %1 : i32
    %35 = arith.muli %34, %length : i32
    %36 = tt.splat %35 : i32 -> tensor<64xi32>
    %37 = arith.addi %36, %8 : tensor<64xi32>
    %38 = tt.load %seed : !tt.ptr<i32>
    %39 = arith.shrui %38, %c16_i32 : i32
    %40 = arith.xori %38, %39 : i32
    %41 = arith.muli %40, %c569420461_i32 : i32
    %42 = arith.shrui %41, %c15_i32 : i32
    %43 = arith.xori %41, %42 : i32
    %44 = arith.muli %43, %c-749064809_i32 : i32
    %45 = arith.shrui %44, %c15_i32 : i32
    %46 = arith.xori %44, %45 : i32
    %47 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %48 = tt.load %47 : !tt.ptr<i32>
    %49 = arith.addi %46, %48 : i32
    %50 = arith.shrui %49, %c16_i32 : i32
    %51 = arith.xori %49, %50 : i32
    %52 = arith.muli %51, %c569420461_i32 : i32
    %53 = arith.shrui %52, %c15_i32 : i32
    %54 = arith.xori %52, %53 : i32
    %55 = arith.muli %54, %c-749064809_i32 : i32
    %56 = arith.shrui %55, %c15_i32 : i32
    %57 = arith.xori %55, %56 : i32
    %58:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_17, %arg12 = %cst_10, %arg13 = %cst_16) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>)  : i32 {
      %88 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %89 = arith.addi %88, %5 : tensor<64xi32>
      %90 = tt.expand_dims %89 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %91 = arith.muli %90, %23 : tensor<64x1xi32>
      %92 = tt.broadcast %91 : tensor<64x1xi32> -> tensor<64x64xi32>
      %93 = arith.addi %92, %29 : tensor<64x64xi32>
      %94 = arith.cmpi slt, %90, %10 : tensor<64x1xi32>
      %95 = tt.addptr %19, %4 : !tt.ptr<$float>, i32
      %96 = tt.splat %95 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %97 = tt.addptr %96, %93 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %98 = tt.broadcast %94 : tensor<64x1xi1> -> tensor<64x64xi1>
      %99 = tt.load %97, %98, %cst_11 : tensor<64x64x!tt.ptr<$float>>
      %100 = arith.muli %heads, %c128_i32 : i32
      %101 = tt.addptr %19, %100 : !tt.ptr<$float>, i32
      %102 = tt.splat %101 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %103 = tt.addptr %102, %93 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %104 = tt.load %103, %98, %cst_11 : tensor<64x64x!tt.ptr<$float>>
      %105 = tt.trans %99 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %106 = tt.dot %32, %105, %cst_16, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %107 = arith.mulf %scale, %cst_15 : f32
      %108 = tt.splat %107 : f32 -> tensor<64x64xf32>
      %109 = arith.mulf %106, %108 : tensor<64x64xf32>
      %110 = tt.splat %length : i32 -> tensor<64xi32>
      %111 = arith.cmpi slt, %8, %110 : tensor<64xi32>
      %112 = tt.splat %22 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %113 = tt.addptr %112, %8 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %114 = tt.load %113, %111, %cst_14 : tensor<64x!tt.ptr<i32>>
      %115 = arith.cmpi slt, %89, %110 : tensor<64xi32>
      %116 = tt.addptr %22, %length : !tt.ptr<i32>, i32
      %117 = tt.splat %116 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %118 = tt.addptr %117, %89 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %119 = tt.load %118, %115, %cst_14 : tensor<64x!tt.ptr<i32>>
      %120 = tt.expand_dims %114 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %121 = tt.expand_dims %119 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %122 = tt.broadcast %120 : tensor<64x1xi32> -> tensor<64x64xi32>
      %123 = tt.broadcast %121 : tensor<1x64xi32> -> tensor<64x64xi32>
      %124 = arith.cmpi eq, %122, %123 : tensor<64x64xi32>
      %125 = arith.select %124, %cst_16, %cst_13 : tensor<64x64xi1>, tensor<64x64xf32>
      %126 = arith.addf %109, %125 : tensor<64x64xf32>
      %127 = tt.expand_dims %115 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %128 = tt.broadcast %127 : tensor<1x64xi1> -> tensor<64x64xi1>
      %129 = arith.select %128, %126, %cst_12 : tensor<64x64xi1>, tensor<64x64xf32>
      %130 = "tt.reduce"(%129) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %196 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %196 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %131 = arith.maxnumf %arg11, %130 : tensor<64xf32>
      %132 = tt.expand_dims %131 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %133 = tt.broadcast %132 : tensor<64x1xf32> -> tensor<64x64xf32>
      %134 = arith.subf %129, %133 : tensor<64x64xf32>
      %135 = math.exp2 %134 : tensor<64x64xf32>
      %136 = arith.subf %arg11, %131 : tensor<64xf32>
      %137 = math.exp2 %136 : tensor<64xf32>
      %138 = arith.mulf %arg12, %137 : tensor<64xf32>
      %139 = "tt.reduce"(%135) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %196 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %196 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %140 = arith.addf %138, %139 : tensor<64xf32>
      %141 = tt.expand_dims %37 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %142 = tt.expand_dims %89 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %143 = arith.addi %57, %c1_i32 : i32
      %144 = arith.shrui %143, %c16_i32 : i32
      %145 = arith.xori %143, %144 : i32
      %146 = arith.muli %145, %c569420461_i32 : i32
      %147 = arith.shrui %146, %c15_i32 : i32
      %148 = arith.xori %146, %147 : i32
      %149 = arith.muli %148, %c-749064809_i32 : i32
      %150 = arith.shrui %149, %c15_i32 : i32
      %151 = arith.xori %149, %150 : i32
      %152 = tt.splat %151 : i32 -> tensor<64x1xi32>
      %153 = arith.addi %141, %152 : tensor<64x1xi32>
      %154 = arith.shrui %153, %cst_5 : tensor<64x1xi32>
      %155 = arith.xori %153, %154 : tensor<64x1xi32>
      %156 = arith.muli %155, %cst_4 : tensor<64x1xi32>
      %157 = arith.shrui %156, %cst_3 : tensor<64x1xi32>
      %158 = arith.xori %156, %157 : tensor<64x1xi32>
      %159 = arith.muli %158, %cst_2 : tensor<64x1xi32>
      %160 = arith.shrui %159, %cst_3 : tensor<64x1xi32>
      %161 = arith.xori %159, %160 : tensor<64x1xi32>
      %162 = arith.addi %57, %c2_i32 : i32
      %163 = arith.shrui %162, %c16_i32 : i32
      %164 = arith.xori %162, %163 : i32
      %165 = arith.muli %164, %c569420461_i32 : i32
      %166 = arith.shrui %165, %c15_i32 : i32
      %167 = arith.xori %165, %166 : i32
      %168 = arith.muli %167, %c-749064809_i32 : i32
      %169 = arith.shrui %168, %c15_i32 : i32
      %170 = arith.xori %168, %169 : i32
      %171 = tt.splat %170 : i32 -> tensor<1x64xi32>
      %172 = arith.addi %142, %171 : tensor<1x64xi32>
      %173 = arith.shrui %172, %cst_9 : tensor<1x64xi32>
      %174 = arith.xori %172, %173 : tensor<1x64xi32>
      %175 = arith.muli %174, %cst_8 : tensor<1x64xi32>
      %176 = arith.shrui %175, %cst_7 : tensor<1x64xi32>
      %177 = arith.xori %175, %176 : tensor<1x64xi32>
      %178 = arith.muli %177, %cst_6 : tensor<1x64xi32>
      %179 = arith.shrui %178, %cst_7 : tensor<1x64xi32>
      %180 = arith.xori %178, %179 : tensor<1x64xi32>
      %181 = tt.broadcast %161 : tensor<64x1xi32> -> tensor<64x64xi32>
      %182 = tt.broadcast %180 : tensor<1x64xi32> -> tensor<64x64xi32>
      %183 = arith.xori %181, %182 : tensor<64x64xi32>
      %184 = arith.muli %183, %cst : tensor<64x64xi32>
      %185 = arith.shrui %184, %cst_0 : tensor<64x64xi32>
      %186 = arith.xori %184, %185 : tensor<64x64xi32>
      %187 = arith.muli %186, %cst_1 : tensor<64x64xi32>
      %188 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %189 = arith.cmpi uge, %187, %188 : tensor<64x64xi32>
      %190 = arith.select %189, %135, %cst_16 : tensor<64x64xi1>, tensor<64x64xf32>
      %191 = tt.expand_dims %137 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %192 = tt.broadcast %191 : tensor<64x1xf32> -> tensor<64x64xf32>
      %193 = arith.mulf %arg13, %192 : tensor<64x64xf32>
      %194 = arith.truncf %190 : tensor<64x64xf32> to tensor<64x64x$float>
      %195 = tt.dot %194, %104, %193, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %131, %140, %195 : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
    }
    %59 = tt.splat %factor : f32 -> tensor<64xf32>
    %60 = arith.divf %59, %58#1 : tensor<64xf32>
    %61 = tt.expand_dims %60 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %62 = tt.broadcast %61 : tensor<64x1xf32> -> tensor<64x64xf32>
    %63 = arith.mulf %58#2, %62 : tensor<64x64xf32>
    %64 = arith.extsi %4 : i32 to i64
    %65 = arith.muli %13, %64 : i64
    %66 = arith.extsi %18 : i32 to i64
    %67 = arith.addi %65, %66 : i64
    %68 = tt.addptr %out, %67 : !tt.ptr<$float>, i64
    %69 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %70 = arith.muli %9, %69 : tensor<64x1xi32>
    %71 = tt.splat %68 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %72 = tt.addptr %71, %70 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %73 = tt.broadcast %72 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %74 = tt.addptr %73, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %75 = arith.truncf %63 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %74, %75, %31 : tensor<64x64x!tt.ptr<$float>>
    %76 = arith.extsi %heads : i32 to i64
    %77 = arith.muli %3, %76 : i64
    %78 = arith.extsi %1 : i32 to i64
    %79 = arith.addi %77, %78 : i64
    %80 = arith.muli %79, %12 : i64
    %81 = tt.addptr %log_sums, %80 : !tt.ptr<f32>, i64
    %82 = tt.splat %81 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %83 = tt.addptr %82, %8 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %84 = math.log2 %58#1 : tensor<64xf32>
    %85 = arith.addf %58#0, %84 : tensor<64xf32>
    %86 = tt.splat %length : i32 -> tensor<64xi32>
    %87 = arith.cmpi slt, %8, %86 : tensor<64xi32>
    tt.store %83, %85, %87 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
