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
    %c0_i32 = arith.constant 0 : i32
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_13 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %cst_14 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_15 = arith.constant dense<0> : tensor<64xi32>
    %cst_16 = arith.constant 1.44269502 : f32
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_18 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %8 = tt.splat %6 : i32 -> tensor<64xi32>
    %9 = arith.addi %8, %7 : tensor<64xi32>
    %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %11 = tt.splat %length : i32 -> tensor<64x1xi32>
    %12 = arith.cmpi slt, %10, %11 : tensor<64x1xi32>
    %13 = arith.extsi %length : i32 to i64
    %14 = arith.muli %3, %13 : i64
    %15 = arith.muli %heads, %c96_i32 : i32
    %16 = arith.extsi %15 : i32 to i64
    %17 = arith.muli %14, %16 : i64
    %18 = tt.addptr %qkv, %17 : !tt.ptr<$float>, i64
    %19 = arith.muli %1, %c32_i32 : i32
    %20 = tt.addptr %18, %19 : !tt.ptr<$float>, i32
    %21 = arith.muli %3, %c2_i64 : i64
    %22 = arith.muli %21, %13 : i64
    %23 = tt.addptr %groups, %22 : !tt.ptr<i32>, i64
    %24 = tt.splat %15 : i32 -> tensor<64x1xi32>
    %25 = arith.muli %10, %24 : tensor<64x1xi32>
    %26 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %27 = tt.addptr %26, %25 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %28 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %29 = tt.broadcast %27 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %30 = tt.broadcast %28 : tensor<1x32xi32> -> tensor<64x32xi32>
    %31 = tt.addptr %29, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %32 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x32xi1>
    %33 = tt.load %31, %32, %cst_11 : tensor<64x32x!tt.ptr<$float>>
    %34 = arith.muli %2, %heads : i32
    %35 = arith.addi %34, %1 : i32
    %36 = arith.muli %35, %length : i32
    %37 = tt.splat %36 : i32 -> tensor<64xi32>
    %38 = arith.addi %37, %9 : tensor<64xi32>
    %39 = tt.load %seed : !tt.ptr<i32>
    %40 = arith.shrui %39, %c16_i32 : i32
    %41 = arith.xori %39, %40 : i32
    %42 = arith.muli %41, %c569420461_i32 : i32
    %43 = arith.shrui %42, %c15_i32 : i32
    %44 = arith.xori %42, %43 : i32
    %45 = arith.muli %44, %c-749064809_i32 : i32
    %46 = arith.shrui %45, %c15_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %49 = tt.load %48 : !tt.ptr<i32>
    %50 = arith.addi %47, %49 : i32
    %51 = arith.shrui %50, %c16_i32 : i32
    %52 = arith.xori %50, %51 : i32
    %53 = arith.muli %52, %c569420461_i32 : i32
    %54 = arith.shrui %53, %c15_i32 : i32
    %55 = arith.xori %53, %54 : i32
    %56 = arith.muli %55, %c-749064809_i32 : i32
    %57 = arith.shrui %56, %c15_i32 : i32
    %58 = arith.xori %56, %57 : i32
    %59:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_18, %arg12 = %cst_10, %arg13 = %cst_12) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>)  : i32 {
      %89 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %90 = arith.addi %89, %7 : tensor<64xi32>
      %91 = tt.expand_dims %90 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %92 = arith.muli %91, %24 : tensor<64x1xi32>
      %93 = tt.broadcast %92 : tensor<64x1xi32> -> tensor<64x32xi32>
      %94 = arith.addi %93, %30 : tensor<64x32xi32>
      %95 = arith.cmpi slt, %91, %11 : tensor<64x1xi32>
      %96 = tt.addptr %20, %4 : !tt.ptr<$float>, i32
      %97 = tt.splat %96 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %98 = tt.addptr %97, %94 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %99 = tt.broadcast %95 : tensor<64x1xi1> -> tensor<64x32xi1>
      %100 = tt.load %98, %99, %cst_11 : tensor<64x32x!tt.ptr<$float>>
      %101 = arith.muli %heads, %c64_i32 : i32
      %102 = tt.addptr %20, %101 : !tt.ptr<$float>, i32
      %103 = tt.splat %102 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %104 = tt.addptr %103, %94 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %105 = tt.load %104, %99, %cst_11 : tensor<64x32x!tt.ptr<$float>>
      %106 = tt.trans %100 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %107 = tt.dot %33, %106, %cst_17, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %108 = arith.mulf %scale, %cst_16 : f32
      %109 = tt.splat %108 : f32 -> tensor<64x64xf32>
      %110 = arith.mulf %107, %109 : tensor<64x64xf32>
      %111 = tt.splat %length : i32 -> tensor<64xi32>
      %112 = arith.cmpi slt, %9, %111 : tensor<64xi32>
      %113 = tt.splat %23 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %114 = tt.addptr %113, %9 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %115 = tt.load %114, %112, %cst_15 : tensor<64x!tt.ptr<i32>>
      %116 = arith.cmpi slt, %90, %111 : tensor<64xi32>
      %117 = tt.addptr %23, %length : !tt.ptr<i32>, i32
      %118 = tt.splat %117 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %119 = tt.addptr %118, %90 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %120 = tt.load %119, %116, %cst_15 : tensor<64x!tt.ptr<i32>>
      %121 = tt.expand_dims %115 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %122 = tt.expand_dims %120 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %123 = tt.broadcast %121 : tensor<64x1xi32> -> tensor<64x64xi32>
      %124 = tt.broadcast %122 : tensor<1x64xi32> -> tensor<64x64xi32>
      %125 = arith.cmpi eq, %123, %124 : tensor<64x64xi32>
      %126 = arith.select %125, %cst_17, %cst_14 : tensor<64x64xi1>, tensor<64x64xf32>
      %127 = arith.addf %110, %126 : tensor<64x64xf32>
      %128 = tt.expand_dims %116 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %129 = tt.broadcast %128 : tensor<1x64xi1> -> tensor<64x64xi1>
      %130 = arith.select %129, %127, %cst_13 : tensor<64x64xi1>, tensor<64x64xf32>
      %131 = "tt.reduce"(%130) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %197 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %197 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %132 = arith.maxnumf %arg11, %131 : tensor<64xf32>
      %133 = tt.expand_dims %132 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %134 = tt.broadcast %133 : tensor<64x1xf32> -> tensor<64x64xf32>
      %135 = arith.subf %130, %134 : tensor<64x64xf32>
      %136 = math.exp2 %135 : tensor<64x64xf32>
      %137 = arith.subf %arg11, %132 : tensor<64xf32>
      %138 = math.exp2 %137 : tensor<64xf32>
      %139 = arith.mulf %arg12, %138 : tensor<64xf32>
      %140 = "tt.reduce"(%136) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %197 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %197 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %141 = arith.addf %139, %140 : tensor<64xf32>
      %142 = tt.expand_dims %38 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %143 = tt.expand_dims %90 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %144 = arith.addi %58, %c1_i32 : i32
      %145 = arith.shrui %144, %c16_i32 : i32
      %146 = arith.xori %144, %145 : i32
      %147 = arith.muli %146, %c569420461_i32 : i32
      %148 = arith.shrui %147, %c15_i32 : i32
      %149 = arith.xori %147, %148 : i32
      %150 = arith.muli %149, %c-749064809_i32 : i32
      %151 = arith.shrui %150, %c15_i32 : i32
      %152 = arith.xori %150, %151 : i32
      %153 = tt.splat %152 : i32 -> tensor<64x1xi32>
      %154 = arith.addi %142, %153 : tensor<64x1xi32>
      %155 = arith.shrui %154, %cst_5 : tensor<64x1xi32>
      %156 = arith.xori %154, %155 : tensor<64x1xi32>
      %157 = arith.muli %156, %cst_4 : tensor<64x1xi32>
      %158 = arith.shrui %157, %cst_3 : tensor<64x1xi32>
      %159 = arith.xori %157, %158 : tensor<64x1xi32>
      %160 = arith.muli %159, %cst_2 : tensor<64x1xi32>
      %161 = arith.shrui %160, %cst_3 : tensor<64x1xi32>
      %162 = arith.xori %160, %161 : tensor<64x1xi32>
      %163 = arith.addi %58, %c2_i32 : i32
      %164 = arith.shrui %163, %c16_i32 : i32
      %165 = arith.xori %163, %164 : i32
      %166 = arith.muli %165, %c569420461_i32 : i32
      %167 = arith.shrui %166, %c15_i32 : i32
      %168 = arith.xori %166, %167 : i32
      %169 = arith.muli %168, %c-749064809_i32 : i32
      %170 = arith.shrui %169, %c15_i32 : i32
      %171 = arith.xori %169, %170 : i32
      %172 = tt.splat %171 : i32 -> tensor<1x64xi32>
      %173 = arith.addi %143, %172 : tensor<1x64xi32>
      %174 = arith.shrui %173, %cst_9 : tensor<1x64xi32>
      %175 = arith.xori %173, %174 : tensor<1x64xi32>
      %176 = arith.muli %175, %cst_8 : tensor<1x64xi32>
      %177 = arith.shrui %176, %cst_7 : tensor<1x64xi32>
      %178 = arith.xori %176, %177 : tensor<1x64xi32>
      %179 = arith.muli %178, %cst_6 : tensor<1x64xi32>
      %180 = arith.shrui %179, %cst_7 : tensor<1x64xi32>
      %181 = arith.xori %179, %180 : tensor<1x64xi32>
      %182 = tt.broadcast %162 : tensor<64x1xi32> -> tensor<64x64xi32>
      %183 = tt.broadcast %181 : tensor<1x64xi32> -> tensor<64x64xi32>
      %184 = arith.xori %182, %183 : tensor<64x64xi32>
      %185 = arith.muli %184, %cst : tensor<64x64xi32>
      %186 = arith.shrui %185, %cst_0 : tensor<64x64xi32>
      %187 = arith.xori %185, %186 : tensor<64x64xi32>
      %188 = arith.muli %187, %cst_1 : tensor<64x64xi32>
      %189 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %190 = arith.cmpi uge, %188, %189 : tensor<64x64xi32>
      %191 = arith.select %190, %136, %cst_17 : tensor<64x64xi1>, tensor<64x64xf32>
      %192 = tt.expand_dims %138 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %193 = tt.broadcast %192 : tensor<64x1xf32> -> tensor<64x32xf32>
      %194 = arith.mulf %arg13, %193 : tensor<64x32xf32>
      %195 = arith.truncf %191 : tensor<64x64xf32> to tensor<64x64x$float>
      %196 = tt.dot %195, %105, %194, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %132, %141, %196 : tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>
    }
    %60 = tt.splat %factor : f32 -> tensor<64xf32>
    %61 = arith.divf %60, %59#1 : tensor<64xf32>
    %62 = tt.expand_dims %61 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %63 = tt.broadcast %62 : tensor<64x1xf32> -> tensor<64x32xf32>
    %64 = arith.mulf %59#2, %63 : tensor<64x32xf32>
    %65 = arith.extsi %4 : i32 to i64
    %66 = arith.muli %14, %65 : i64
    %67 = arith.extsi %19 : i32 to i64
    %68 = arith.addi %66, %67 : i64
    %69 = tt.addptr %out, %68 : !tt.ptr<$float>, i64
    %70 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %71 = arith.muli %10, %70 : tensor<64x1xi32>
    %72 = tt.splat %69 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %73 = tt.addptr %72, %71 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %74 = tt.broadcast %73 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %75 = tt.addptr %74, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %76 = arith.truncf %64 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %75, %76, %32 : tensor<64x32x!tt.ptr<$float>>
    %77 = arith.extsi %heads : i32 to i64
    %78 = arith.muli %3, %77 : i64
    %79 = arith.extsi %1 : i32 to i64
    %80 = arith.addi %78, %79 : i64
    %81 = arith.muli %80, %13 : i64
    %82 = tt.addptr %log_sums, %81 : !tt.ptr<f32>, i64
    %83 = tt.splat %82 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %84 = tt.addptr %83, %9 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %85 = math.log2 %59#1 : tensor<64xf32>
    %86 = arith.addf %59#0, %85 : tensor<64xf32>
    %87 = tt.splat %length : i32 -> tensor<64xi32>
    %88 = arith.cmpi slt, %9, %87 : tensor<64xi32>
    tt.store %84, %86, %88 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
