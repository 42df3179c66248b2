module {
  tt.func public @backward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %deltas: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<1> : tensor<64xi32>
    %cst_0 = arith.constant dense<0x7F800000> : tensor<64xf32>
    %cst_1 = arith.constant -5.000000e+08 : f32
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<64xf32>
    %cst_3 = arith.constant dense<0> : tensor<64xi32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c2_i32 = arith.constant 2 : i32
    %cst_5 = arith.constant dense<15> : tensor<64xi32>
    %cst_6 = arith.constant dense<569420461> : tensor<64xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %c0_i32 = arith.constant 0 : i32
    %c128_i32 = arith.constant 128 : i32
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_9 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_10 = arith.constant 1.44269502 : f32
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.extsi %length : i32 to i64
    %7 = arith.muli %3, %6 : i64
    %8 = arith.muli %heads, %c192_i32 : i32
    %9 = arith.extsi %8 : i32 to i64
    %10 = arith.muli %7, %9 : i64
    %11 = tt.addptr %qkv, %10 : !tt.ptr<$float>, i64
    %12 = arith.muli %1, %c64_i32 : i32
    %13 = tt.addptr %11, %12 : !tt.ptr<$float>, i32
    %14 = tt.addptr %d_qkv, %10 : !tt.ptr<$float>, i64
    %15 = tt.addptr %14, %12 : !tt.ptr<$float>, i32
    %16 = arith.extsi %4 : i32 to i64
    %17 = arith.muli %7, %16 : i64
    %18 = arith.extsi %12 : i32 to i64
    %19 = arith.addi %17, %18 : i64
    %20 = tt.addptr %d_out, %19 : !tt.ptr<$float>, i64
    %21 = arith.extsi %heads : i32 to i64
    %22 = arith.muli %3, %21 : i64
    %23 = arith.extsi %1 : i32 to i64
    %24 = arith.addi %22, %23 : i64
    %25 = arith.muli %24, %6 : i64
    %26 = tt.addptr %log_sums, %25 : !tt.ptr<f32>, i64
    %27 = tt.addptr %deltas, %25 : !tt.ptr<f32>, i64
    %28 = arith.muli %3, %c2_i64 : i64
    %29 = arith.muli %28, %6 : i64
    %30 = tt.addptr %groups, %29 : !tt.ptr<i32>, i64
    %31 = arith.muli %2, %heads : i32
    %32 = arith.addi %31, %1 : i32
    %33 = arith.muli %32, %length : i32
    %34 = tt.load %seed : !tt.ptr<i32>
    %35 = arith.shrui %34, %c16_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = arith.muli %36, %c569420461_i32 : i32
    %38 = arith.shrui %37, %c15_i32 : i32
    %39 = arith.xori %37, %38 : i32
    %40 = arith.muli %39, %c-749064809_i32 : i32
    %41 = arith.shrui %40, %c15_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %44 = tt.load %43 : !tt.ptr<i32>
    %45 = arith.addi %42, %44 : i32
    %46 = arith.shrui %45, %c16_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.muli %47, %c569420461_i32 : i32
    %49 = arith.shrui %48, %c15_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c-749064809_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.mulf %scale, %cst_10 : f32
    %55 = arith.muli %0, %c64_i32 : i32
    %56 = tt.splat %55 : i32 -> tensor<64xi32>
    %57 = arith.addi %56, %5 : tensor<64xi32>
    %58 = tt.expand_dims %57 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %59 = tt.splat %length : i32 -> tensor<64x1xi32>
    %60 = arith.cmpi slt, %58, %59 : tensor<64x1xi32>
    %61 = tt.splat %8 : i32 -> tensor<64x1xi32>
    %62 = arith.muli %58, %61 : tensor<64x1xi32>
    %63 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %64 = tt.broadcast %62 : tensor<64x1xi32> -> tensor<64x64xi32>
    %65 = tt.broadcast %63 : tensor<1x64xi32> -> tensor<64x64xi32>
    %66 = arith.addi %64, %65 : tensor<64x64xi32>
    %67 = tt.addptr %13, %4 : !tt.ptr<$float>, i32
    %68 = tt.splat %67 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %69 = tt.addptr %68, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %70 = tt.broadcast %60 : tensor<64x1xi1> -> tensor<64x64xi1>
    %71 = tt.load %69, %70, %cst_7 : tensor<64x64x!tt.ptr<$float>>
    %72 = arith.muli %heads, %c128_i32 : i32
    %73 = tt.addptr %13, %72 : !tt.ptr<$float>, i32
    %74 = tt.splat %73 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %75 = tt.addptr %74, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %76 = tt.load %75, %70, %cst_7 : tensor<64x64x!tt.ptr<$float>>
    %77 = tt.splat %length : i32 -> tensor<64xi32>
    %78 = arith.cmpi slt, %57, %77 : tensor<64xi32>
    %79 = tt.addptr %30, %length : !tt.ptr<i32>, i32
    %80 = tt.splat %79 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %81 = tt.addptr %80, %57 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %82 = tt.load %81, %78, %cst_9 : tensor<64x!tt.ptr<i32>>
    %83 = arith.addi %53, %c2_i32 : i32
    %84 = arith.shrui %83, %c16_i32 : i32
    %85 = arith.xori %83, %84 : i32
    %86 = arith.muli %85, %c569420461_i32 : i32
    %87 = arith.shrui %86, %c15_i32 : i32
    %88 = arith.xori %86, %87 : i32
    %89 = arith.muli %88, %c-749064809_i32 : i32
    %90 = arith.shrui %89, %c15_i32 : i32
    %91 = arith.xori %89, %90 : i32
    %92 = tt.splat %91 : i32 -> tensor<64xi32>
    %93 = arith.addi %57, %92 : tensor<64xi32>
    %94 = arith.muli %93, %cst_6 : tensor<64xi32>
    %95 = arith.shrui %94, %cst_5 : tensor<64xi32>
    %96 = arith.xori %94, %95 : tensor<64xi32>
    %97 = tt.expand_dims %96 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %98:2 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_8, %arg14 = %cst_8) -> (tensor<64x64xf32>, tensor<64x64xf32>)  : i32 {
      %162 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %163 = arith.addi %162, %5 : tensor<64xi32>
      %164 = tt.expand_dims %163 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %165 = arith.cmpi slt, %164, %59 : tensor<64x1xi32>
      %166 = arith.muli %164, %61 : tensor<64x1xi32>
      %167 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
      %168 = tt.addptr %167, %166 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
      %169 = tt.broadcast %168 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
      %170 = tt.addptr %169, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %171 = tt.broadcast %165 : tensor<64x1xi1> -> tensor<64x64xi1>
      %172 = tt.load %170, %171, %cst_7 : tensor<64x64x!tt.ptr<$float>>
      %173 = tt.splat %4 : i32 -> tensor<64x1xi32>
      %174 = arith.muli %164, %173 : tensor<64x1xi32>
      %175 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
      %176 = tt.addptr %175, %174 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
      %177 = tt.broadcast %176 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
      %178 = tt.addptr %177, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %179 = tt.load %178, %171, %cst_7 : tensor<64x64x!tt.ptr<$float>>
      %180 = arith.cmpi slt, %163, %77 : tensor<64xi32>
      %181 = tt.splat %26 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %182 = tt.addptr %181, %163 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %183 = tt.load %182, %180, %cst_0 : tensor<64x!tt.ptr<f32>>
      %184 = arith.mulf %scale, %cst_1 : f32
      %185 = arith.mulf %184, %cst_10 : f32
      %186 = tt.splat %185 : f32 -> tensor<64xf32>
      %187 = arith.cmpf olt, %183, %186 : tensor<64xf32>
      %188 = arith.sitofp %length : i32 to f32
      %189 = math.log2 %188 : f32
      %190 = arith.negf %189 : f32
      %191 = tt.splat %190 : f32 -> tensor<64xf32>
      %192 = arith.select %187, %191, %cst_2 : tensor<64xi1>, tensor<64xf32>
      %193 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %194 = tt.addptr %193, %163 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %195 = tt.load %194, %180, %cst_4 : tensor<64x!tt.ptr<f32>>
      %196 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %197 = tt.addptr %196, %163 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %198 = tt.load %197, %180, %cst_3 : tensor<64x!tt.ptr<i32>>
      %199 = tt.trans %172 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %200 = tt.dot %71, %199, %cst_8, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %201 = tt.splat %54 : f32 -> tensor<64x64xf32>
      %202 = arith.mulf %200, %201 : tensor<64x64xf32>
      %203 = tt.expand_dims %183 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %204 = tt.broadcast %203 : tensor<1x64xf32> -> tensor<64x64xf32>
      %205 = arith.subf %202, %204 : tensor<64x64xf32>
      %206 = tt.expand_dims %198 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %207 = tt.expand_dims %82 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %208 = tt.broadcast %206 : tensor<1x64xi32> -> tensor<64x64xi32>
      %209 = tt.broadcast %207 : tensor<64x1xi32> -> tensor<64x64xi32>
      %210 = arith.cmpi eq, %208, %209 : tensor<64x64xi32>
      %211 = tt.expand_dims %192 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %212 = tt.broadcast %211 : tensor<1x64xf32> -> tensor<64x64xf32>
      %213 = arith.select %210, %205, %212 : tensor<64x64xi1>, tensor<64x64xf32>
      %214 = math.exp2 %213 : tensor<64x64xf32>
      %215 = tt.trans %179 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %216 = tt.dot %76, %215, %cst_8, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %217 = tt.splat %33 : i32 -> tensor<64xi32>
      %218 = arith.addi %217, %163 : tensor<64xi32>
      %219 = arith.addi %53, %c1_i32 : i32
      %220 = arith.shrui %219, %c16_i32 : i32
      %221 = arith.xori %219, %220 : i32
      %222 = arith.muli %221, %c569420461_i32 : i32
      %223 = arith.shrui %222, %c15_i32 : i32
      %224 = arith.xori %222, %223 : i32
      %225 = arith.muli %224, %c-749064809_i32 : i32
      %226 = arith.shrui %225, %c15_i32 : i32
      %227 = arith.xori %225, %226 : i32
      %228 = tt.splat %227 : i32 -> tensor<64xi32>
      %229 = arith.addi %218, %228 : tensor<64xi32>
      %230 = arith.muli %229, %cst_6 : tensor<64xi32>
      %231 = arith.shrui %230, %cst_5 : tensor<64xi32>
      %232 = arith.xori %230, %231 : tensor<64xi32>
      %233 = arith.ori %232, %cst : tensor<64xi32>
      %234 = tt.expand_dims %233 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %235 = tt.broadcast %234 : tensor<1x64xi32> -> tensor<64x64xi32>
      %236 = tt.broadcast %97 : tensor<64x1xi32> -> tensor<64x64xi32>
      %237 = arith.muli %235, %236 : tensor<64x64xi32>
      %238 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %239 = arith.cmpi uge, %237, %238 : tensor<64x64xi32>
      %240 = arith.select %239, %216, %cst_8 : tensor<64x64xi1>, tensor<64x64xf32>
      %241 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %242 = arith.mulf %240, %241 : tensor<64x64xf32>
      %243 = tt.expand_dims %195 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %244 = tt.broadcast %243 : tensor<1x64xf32> -> tensor<64x64xf32>
      %245 = arith.subf %242, %244 : tensor<64x64xf32>
      %246 = arith.mulf %214, %245 : tensor<64x64xf32>
      %247 = arith.select %239, %214, %cst_8 : tensor<64x64xi1>, tensor<64x64xf32>
      %248 = arith.truncf %247 : tensor<64x64xf32> to tensor<64x64x$float>
      %249 = tt.dot %248, %179, %arg14, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %250 = arith.truncf %246 : tensor<64x64xf32> to tensor<64x64x$float>
      %251 = tt.dot %250, %172, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %251, %249 : tensor<64x64xf32>, tensor<64x64xf32>
    }
    %99 = tt.addptr %15, %4 : !tt.ptr<$float>, i32
    %100 = tt.splat %99 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %101 = tt.addptr %100, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %102 = tt.splat %scale : f32 -> tensor<64x64xf32>
    %103 = arith.mulf %98#0, %102 : tensor<64x64xf32>
    %104 = arith.truncf %103 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %101, %104, %70 : tensor<64x64x!tt.ptr<$float>>
    %105 = tt.addptr %15, %72 : !tt.ptr<$float>, i32
    %106 = tt.splat %105 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %107 = tt.addptr %106, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %108 = tt.splat %factor : f32 -> tensor<64x64xf32>
    %109 = arith.mulf %98#1, %108 : tensor<64x64xf32>
    %110 = arith.truncf %109 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %107, %110, %70 : tensor<64x64x!tt.ptr<$float>>
    %111 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %112 = tt.addptr %111, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %113 = tt.load %112, %70, %cst_7 : tensor<64x64x!tt.ptr<$float>>
    %114 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %115 = arith.muli %58, %114 : tensor<64x1xi32>
    %116 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %117 = tt.addptr %116, %115 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %118 = tt.broadcast %117 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %119 = tt.addptr %118, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %120 = tt.load %119, %70, %cst_7 : tensor<64x64x!tt.ptr<$float>>
    %121 = tt.splat %26 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %122 = tt.addptr %121, %57 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %123 = tt.load %122, %78, %cst_0 : tensor<64x!tt.ptr<f32>>
    %124 = arith.mulf %scale, %cst_1 : f32
    %125 = arith.mulf %124, %cst_10 : f32
    %126 = tt.splat %125 : f32 -> tensor<64xf32>
    %127 = arith.cmpf olt, %123, %126 : tensor<64xf32>
    %128 = arith.sitofp %length : i32 to f32
    %129 = math.log2 %128 : f32
    %130 = arith.negf %129 : f32
    %131 = tt.splat %130 : f32 -> tensor<64xf32>
    %132 = arith.select %127, %131, %cst_2 : tensor<64xi1>, tensor<64xf32>
    %133 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %134 = tt.addptr %133, %57 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %135 = tt.load %134, %78, %cst_4 : tensor<64x!tt.ptr<f32>>
    %136 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %137 = tt.addptr %136, %57 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %138 = tt.load %137, %78, %cst_3 : tensor<64x!tt.ptr<i32>>
    %139 = tt.splat %33 : i32 -> tensor<64xi32>
    %140 = arith.addi %139, %57 : tensor<64xi32>
    %141 = arith.addi %53, %c1_i32 : i32
    %142 = arith.shrui %141, %c16_i32 : i32
    %143 = arith.xori %141, %142 : i32
    %144 = arith.muli %143, %c569420461_i32 : i32
    %145 = arith.shrui %144, %c15_i32 : i32
    %146 = arith.xori %144, %145 : i32
    %147 = arith.muli %146, %c-749064809_i32 : i32
    %148 = arith.shrui %147, %c15_i32 : i32
    %149 = arith.xori %147, %148 : i32
    %150 = tt.splat %149 : i32 -> tensor<64xi32>
    %151 = arith.addi %140, %150 : tensor<64xi32>
    %152 = arith.muli %151, %cst_6 : tensor<64xi32>
    %153 = arith.shrui %152, %cst_5 : tensor<64xi32>
    %154 = arith.xori %152, %153 : tensor<64xi32>
    %155 = arith.ori %154, %cst : tensor<64xi32>
    %156 = tt.expand_dims %155 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %157 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_8) -> (tensor<64x64xf32>)  : i32 {
      %162 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %163 = arith.addi %162, %5 : tensor<64xi32>
      %164 = tt.expand_dims %163 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %165 = arith.cmpi slt, %164, %59 : tensor<64x1xi32>
      %166 = arith.muli %164, %61 : tensor<64x1xi32>
      %167 = tt.broadcast %166 : tensor<64x1xi32> -> tensor<64x64xi32>
      %168 = arith.addi %167, %65 : tensor<64x64xi32>
      %169 = tt.addptr %68, %168 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %170 = tt.broadcast %165 : tensor<64x1xi1> -> tensor<64x64xi1>
      %171 = tt.load %169, %170, %cst_7 : tensor<64x64x!tt.ptr<$float>>
      %172 = tt.addptr %74, %168 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %173 = tt.load %172, %170, %cst_7 : tensor<64x64x!tt.ptr<$float>>
      %174 = arith.cmpi slt, %163, %77 : tensor<64xi32>
      %175 = tt.addptr %80, %163 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %176 = tt.load %175, %174, %cst_9 : tensor<64x!tt.ptr<i32>>
      %177 = tt.trans %171 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %178 = tt.dot %113, %177, %cst_8, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %179 = tt.splat %54 : f32 -> tensor<64x64xf32>
      %180 = arith.mulf %178, %179 : tensor<64x64xf32>
      %181 = tt.expand_dims %123 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %182 = tt.broadcast %181 : tensor<64x1xf32> -> tensor<64x64xf32>
      %183 = arith.subf %180, %182 : tensor<64x64xf32>
      %184 = tt.expand_dims %138 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %185 = tt.expand_dims %176 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %186 = tt.broadcast %184 : tensor<64x1xi32> -> tensor<64x64xi32>
      %187 = tt.broadcast %185 : tensor<1x64xi32> -> tensor<64x64xi32>
      %188 = arith.cmpi eq, %186, %187 : tensor<64x64xi32>
      %189 = tt.expand_dims %132 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %190 = tt.broadcast %189 : tensor<64x1xf32> -> tensor<64x64xf32>
      %191 = arith.select %188, %183, %190 : tensor<64x64xi1>, tensor<64x64xf32>
      %192 = math.exp2 %191 : tensor<64x64xf32>
      %193 = tt.trans %173 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %194 = tt.dot %120, %193, %cst_8, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %195 = arith.addi %163, %92 : tensor<64xi32>
      %196 = arith.muli %195, %cst_6 : tensor<64xi32>
      %197 = arith.shrui %196, %cst_5 : tensor<64xi32>
      %198 = arith.xori %196, %197 : tensor<64xi32>
      %199 = tt.expand_dims %198 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %200 = tt.broadcast %156 : tensor<64x1xi32> -> tensor<64x64xi32>
      %201 = tt.broadcast %199 : tensor<1x64xi32> -> tensor<64x64xi32>
      %202 = arith.muli %200, %201 : tensor<64x64xi32>
      %203 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %204 = arith.cmpi uge, %202, %203 : tensor<64x64xi32>
      %205 = arith.select %204, %194, %cst_8 : tensor<64x64xi1>, tensor<64x64xf32>
      %206 = arith.mulf %205, %108 : tensor<64x64xf32>
      %207 = tt.expand_dims %135 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %208 = tt.broadcast %207 : tensor<64x1xf32> -> tensor<64x64xf32>
      %209 = arith.subf %206, %208 : tensor<64x64xf32>
      %210 = arith.mulf %192, %209 : tensor<64x64xf32>
      %211 = arith.truncf %210 : tensor<64x64xf32> to tensor<64x64x$float>
      %212 = tt.dot %211, %171, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %212 : tensor<64x64xf32>
    }
    %158 = tt.splat %15 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %159 = tt.addptr %158, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %160 = arith.mulf %157, %102 : tensor<64x64xf32>
    %161 = arith.truncf %160 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %159, %161, %70 : tensor<64x64x!tt.ptr<$float>>
    tt.return
  }
}
